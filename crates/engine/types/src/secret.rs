//! A wrapper for secret values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Wraps a password, token or key: `Debug` and `Display` print `***`. Serialization writes the real value,
/// which Secret objects need; logging never serializes.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Secret(value)
    }

    /// The value.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Unwraps the value.
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Secret(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_display_hide_the_value() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "printed through Debug")]
        struct Credentials {
            user: &'static str,
            password: Secret<String>,
        }
        let login = Credentials { user: "ann", password: Secret::new("hunter2".to_owned()) };
        assert_eq!(format!("{login:?}"), "Credentials { user: \"ann\", password: *** }");
        assert_eq!(format!("{}", login.password), "***");
        assert_eq!(login.password.expose(), "hunter2");
    }
}
