//! Notifications of the desktop that parlor runs on: through D-Bus, or the notification center of macOS.

use std::sync::Mutex;
use std::time::Duration;

use notify_rust::{Notification, Timeout};

/// How long a notification is shown, if the desktop allows it to be set.
const SHOWN: Duration = Duration::from_secs(10);

/// Held while a notification is sent: a desktop that does not respond must not gather threads.
static SENDING: Mutex<()> = Mutex::new(());

/// Shows a notification. The texts must be sanitised; markup in them is shown as text. Blocks until the desktop has
/// responded. Does nothing while another notification is being sent. Fails with a message for the user.
pub fn show(title: &str, text: &str) -> Result<(), String> {
    let Ok(_guard) = SENDING.try_lock() else { return Ok(()) };
    // The text of a notification may contain HTML, with links and images; the title may not.
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let timeout = Timeout::from(SHOWN);
    let shown = Notification::new().appname("parlor").summary(title).body(&text).timeout(timeout).show();
    shown.map(drop).map_err(|error| {
        format!(
            "No desktop notification; set `ui.notify` to `terminal` or `auto`. The system reports: {error}."
        )
    })
}
