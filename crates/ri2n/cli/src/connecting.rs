//! Settings of connections, from arguments and a file.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;
use ri2n_io::{Config, Key};

/// The environment variable that has the passphrase.
pub(crate) const PASSPHRASE_VARIABLE: &str = "RI2N_PASSPHRASE";

/// Settings of connections that every verb takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Connecting {
    /// A TOML file with settings: links, key, deadlines, buffers, ports
    #[arg(long, value_name = "FILE", env = "RI2N_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Our addresses to use, instead of all interfaces
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) links: Vec<IpAddr>,
    /// Links for each pair of addresses, 1 to 8, with source ports by which switches and `espalier tagger` choose paths; 1 unless
    /// given. The end that connects says how many
    #[arg(long, value_name = "K", value_parser = paths)]
    pub(crate) paths: Option<u8>,
    /// Authenticate every packet with this passphrase; both ends need it
    #[arg(long, value_name = "PHRASE", env = PASSPHRASE_VARIABLE, hide_env_values = true)]
    pub(crate) passphrase: Option<String>,
    /// Encrypt every packet, with the key of --config or --passphrase; both ends need it
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// Refuse connections with other machines that would be plain TCP (run, proxy); true where there is a key, else false
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) require: Option<bool>,
}

fn paths(text: &str) -> Result<u8, String> {
    ri2n_io::check_paths(text.parse().map_err(|_| format!("`{text}` is no number"))?)
}

impl Connecting {
    /// The settings that these arguments ask for.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let mut config = match &self.config {
            Some(path) => Config::from_file(path)?,
            None => Config::default(),
        };
        if !self.links.is_empty() {
            config.links = ri2n_io::LinkChoice::Addresses(self.links.iter().copied().map(Into::into).collect());
        }
        if let Some(passphrase) = &self.passphrase {
            config.keys = Key::from_passphrase(passphrase).into();
        }
        if self.encrypt {
            config.privacy = ri2n_io::Privacy::Encrypted;
        }
        config.paths = self.paths.unwrap_or(config.paths);
        config.require = self.require.or(config.require);
        config.check().map_err(anyhow::Error::msg)?;
        Ok(config)
    }
}
