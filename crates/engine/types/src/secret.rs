//! A value that must not be shown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Wraps a password, token or key: `Debug` and `Display` print `***`. Serialising it writes the real value, since a
/// Secret object would be useless otherwise; logging never serialises.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides a value.
    pub const fn new(value: T) -> Self {
        Secret(value)
    }

    /// The value itself, at the place where it is used.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Takes the value out.
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
    fn never_shows_its_value() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "printed through Debug")]
        struct Login {
            user: &'static str,
            password: Secret<String>,
        }
        let login = Login { user: "ann", password: Secret::new("hunter2".to_owned()) };
        assert_eq!(format!("{login:?}"), "Login { user: \"ann\", password: *** }");
        assert_eq!(format!("{}", login.password), "***");
        assert_eq!(login.password.expose(), "hunter2");
    }
}
