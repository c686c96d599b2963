//! File formats.

/// File format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Any bytes, in a JSON envelope while encrypted.
    Binary,
    /// `KEY=value`
    Dotenv,
    /// Sections of `key = value`
    Ini,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// The name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Binary => "binary",
            Format::Dotenv => "dotenv",
            Format::Ini => "INI",
            Format::Json => "JSON",
            Format::Yaml => "YAML",
        }
    }

    /// The format by file extension; a Docker configuration is JSON.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        let ends = |end: &str| path.ends_with(end);
        if ends(".dockerconfigjson") || ends(".json") {
            Format::Json
        } else if ends(".yaml") || ends(".yml") {
            Format::Yaml
        } else if ends(".env") {
            Format::Dotenv
        } else if ends(".ini") {
            Format::Ini
        } else {
            Format::Binary
        }
    }

    /// Whether bytes look encrypted in this format.
    #[must_use]
    pub fn is_encrypted(self, bytes: &[u8]) -> bool {
        let marker: &[u8] = match self {
            Format::Binary | Format::Json => b"\"mac\": \"ENC[",
            Format::Dotenv => b"sops_mac=ENC[",
            Format::Ini => b"[sops]",
            Format::Yaml => b"mac: ENC[",
        };
        bytes.windows(marker.len()).any(|w| w == marker)
    }

    /// The format in which bytes are encrypted, if they are.
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        [Format::Json, Format::Yaml, Format::Dotenv, Format::Ini].into_iter().find(|f| f.is_encrypted(bytes))
    }
}
