//! TLS settings of a connection, and the causes of its errors.
//!
//! Certificates are verified by the system's rules, and by the additional authorities of the user. HTTP/2 is
//! offered unless the connection becomes a WebSocket.
//! Invariants: verification cannot be disabled; a CA file that cannot be used is reported before anything is sent.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// Maximum size of a CA file in bytes; those of systems have a few hundred KiB.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Creates the configuration of one connection. Reads certificates from disk.
///
/// # Errors
/// The certificates of the system or of `ca_file` cannot be used; full sentences.
pub fn config(is_safe: bool, is_upgrade: bool, ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let own = ca_file.map_or(Ok(Vec::new()), authorities)?;
    let provider = Arc::new(ring::default_provider());
    let system = |error: rustls::Error| {
        format!(
            "Cannot use the system's trusted certificates: {error}. Install ca-certificates, or set \
             `ca_file` or SSL_CERT_FILE."
        )
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(system)?;
    let mut config = if is_safe {
        let verifier = Verifier::new_with_extra_roots(own, provider).map_err(system)?;
        // `dangerous` is the library's name for any custom verifier; this one uses the verification of the system.
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
    } else {
        // Never used, because a client sends requests only to the origin of its URL.
        builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !is_upgrade {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(config)
}

fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = file.display();
    let wrong = |why: &str| {
        Err(format!(
            "`ca_file` {shown} {why}. Set a PEM file with the authority's certificate; it starts with \
             -----BEGIN CERTIFICATE-----."
        ))
    };
    match std::fs::metadata(file) {
        Err(error) => return wrong(&format!("cannot be read: {error}")),
        Ok(data) if data.len() > MAX_FILE_BYTES => return wrong("is too large"),
        Ok(data) if !data.is_file() => return wrong("is not a file"),
        Ok(_) => {}
    }
    let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, PemError>>);
    match found {
        Ok(found) if found.is_empty() => wrong("contains no certificate"),
        Ok(found) => Ok(found),
        Err(PemError::Io(error)) => wrong(&format!("cannot be read: {error}")),
        Err(error) => wrong(&format!("is damaged: {error}")),
    }
}

/// An error and its sources, outermost first.
pub fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| below(*error))
}

fn below<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    // The source of an IO error is that of the error it wraps, so the wrapped error is checked first.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(held) => Some(held),
        None => error.source(),
    }
}

/// The message of the innermost source of an error.
pub fn innermost(error: &(dyn StdError + 'static)) -> String {
    let text = chain(error).last().map(ToString::to_string).unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

/// What is wrong with the TLS connection to a host, and what to do, in full sentences.
pub fn describe(error: &rustls::Error, host: &str) -> String {
    use rustls::CertificateError as Bad;
    const ASK: &str = "Nothing was sent. Ask the server's administrator.";
    let kind = match error {
        rustls::Error::InvalidCertificate(kind) => kind,
        rustls::Error::InvalidMessage(_) => {
            let advice = "Check the server, or use a URL that starts with http:// or ws://.";
            return format!("{host} does not use TLS. {advice}");
        }
        other => return format!("The TLS connection to {host} failed: {other}."),
    };
    let untrusted = format!("is not trusted ({kind:?})");
    let (problem, remedy) = match kind {
        // A bad signature: the authority has the name of a known one, but another key.
        Bad::UnknownIssuer | Bad::BadSignature => (
            "is from an unknown authority",
            "If you trust the server, add the authority's certificate to the system, or set `ca_file` of this \
             agent in the configuration, --ca-file, or SSL_CERT_FILE.",
        ),
        Bad::Expired | Bad::ExpiredContext { .. } => ("has expired", ASK),
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => ("is not valid yet; check the clock", ASK),
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => ("is for another host name", ASK),
        Bad::Revoked => ("was revoked", ASK),
        // What openssl creates by default for self-signed certificates.
        _ if untrusted.contains("CaUsedAsEndEntity") => (
            "is a CA certificate, which is not valid for a server",
            "Nothing was sent. Create a server certificate (basicConstraints CA:FALSE); if it is self-signed, \
             set it as `ca_file` of this agent, or pass --ca-file.",
        ),
        _ => (untrusted.as_str(), ASK),
    };
    format!("The certificate of {host} {problem}. {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificates_of_the_system_are_readable() {
        assert_eq!(config(true, false, None).unwrap().alpn_protocols.len(), 2);
        assert_eq!(config(false, true, None).unwrap().alpn_protocols, [b"http/1.1"]);
    }

    #[test]
    fn invalid_ca_files_are_reported_with_the_expected_format() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        for (text, expected) in [
            (None, "cannot be read"),
            (Some(""), "contains no certificate"),
            (
                Some("-----BEGIN PRIVATE KEY-----\naGk=\n-----END PRIVATE KEY-----\n"),
                "contains no \
                 certificate",
            ),
            (Some("-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n"), "is damaged"),
            (Some("-----BEGIN CERTIFICATE-----\naGk=\n"), "is damaged"),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let error = authorities(&file).unwrap_err();
            assert!(error.contains(expected) && error.contains("-----BEGIN CERTIFICATE-----"), "{error}");
        }
        assert!(authorities(folder.path()).unwrap_err().contains("is not a file"));
    }
}
