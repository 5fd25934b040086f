//! What happens to a secret in a prompt.

/// The user's decision about secrets in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAnswer {
    /// The prompt returns to the composer.
    Edit,
    Hide,
    Send,
}
