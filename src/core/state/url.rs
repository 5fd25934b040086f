//! Checks an address before it is opened.
//!
//! Source: ACP v1 elicitation: show the full address and its host, warn on punycode, open only on consent.

use std::net::IpAddr;

/// The properties of an address that matter to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFacts {
    /// The host that a browser would connect to; empty if there is none.
    pub host: String,
    pub warnings: Vec<String>,
    /// Whether parlor would open it: only web addresses without deceptive parts.
    pub can_open: bool,
}

/// Parses an address like a browser.
pub fn inspect_url(url: &str) -> UrlFacts {
    let mut facts = UrlFacts { host: String::new(), warnings: Vec::new(), can_open: true };
    let (scheme, rest) = url.split_once("://").unwrap_or(("", ""));
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        facts.warnings.push("Not a web address. Only http and https links are opened.".to_owned());
        facts.can_open = false;
    }
    if url.chars().any(|ch| ch.is_control() || ch.is_whitespace() || ch == '\\') {
        facts.warnings.push("The address contains deceptive characters. It is not opened.".to_owned());
        facts.can_open = false;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let (user, host_and_port) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    facts.host = without_port(host_and_port).to_lowercase();
    if facts.host.is_empty() && facts.can_open {
        facts.warnings.push("The address has no host. It is not opened.".to_owned());
        facts.can_open = false;
    }
    if user.is_some() {
        facts.warnings.push(format!("The part before @ is not the host. The real host is {}.", facts.host));
    }
    let is_disguised = facts.host.split('.').any(|label| label.starts_with("xn--")) || !facts.host.is_ascii();
    if is_disguised {
        facts.warnings.push("The host contains look-alike characters.".to_owned());
    }
    if scheme.eq_ignore_ascii_case("http") && !is_local(&facts.host) {
        facts.warnings.push("The connection is not encrypted.".to_owned());
    }
    facts
}

fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host.find(']').and_then(|end| host.get(..=end)).unwrap_or(host);
    }
    host.split(':').next().unwrap_or_default()
}

fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_host_that_a_browser_connects_to() {
        for (url, host) in [
            ("https://example.org/a?b#c", "example.org"),
            ("HTTPS://Example.ORG:8443", "example.org"),
            ("https://[2001:db8::1]:80/x", "[2001:db8::1]"),
            ("https://example.org?@other.test", "example.org"),
        ] {
            let facts = inspect_url(url);
            assert_eq!(facts.host, host, "{url}");
            assert_eq!((facts.warnings, facts.can_open), (Vec::new(), true), "{url}");
        }
    }

    #[test]
    fn warns_of_deceptive_names() {
        for url in ["https://xn--pple-43d.com/", "https://www.xn--e1awd7f.com", "https://аpple.com/"] {
            let facts = inspect_url(url);
            assert_eq!(facts.warnings.len(), 1, "{url}");
            assert!(facts.can_open, "{url}");
        }
        let facts = inspect_url("https://bank.example@evil.test/");
        assert_eq!(facts.host, "evil.test");
        assert!(facts.warnings[0].contains("evil.test"));
    }

    #[test]
    fn warns_of_plain_http_except_on_localhost() {
        assert_eq!(inspect_url("http://example.org/").warnings, ["The connection is not encrypted."]);
        for host in ["localhost:3000", "127.0.0.1", "127.1.2.3:80", "[::1]:8080", "app.localhost"] {
            assert!(inspect_url(&format!("http://{host}/callback")).warnings.is_empty(), "{host}");
        }
        for host in ["127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "128.0.0.1"] {
            assert!(!inspect_url(&format!("http://{host}/callback")).warnings.is_empty(), "{host}");
        }
    }

    #[test]
    fn opens_only_clean_web_addresses() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "",
            "https://",
            "https://a.test\\@b.test",
            "https://a b/",
        ] {
            let facts = inspect_url(url);
            assert!(!facts.can_open, "{url}");
            assert!(!facts.warnings.is_empty(), "{url}");
        }
    }
}
