//! Webhooks: each delivery posted as JSON, signed. Source: Standard Webhooks 1.0, "Webhook headers" and "Signature scheme".

use std::{fs, path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use tls::tls_config;
use ureq::Agent;

use super::NotDelivered;
use crate::documents::Delivery;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// Bounds of a secret's length.
const SECRET_LEN: std::ops::RangeInclusive<usize> = 24..=64;
/// The receiver is gone for good.
const GONE: u16 = 410;

/// A server to which deliveries are posted.
pub(super) struct Webhook {
    address: String,
    secret: Vec<u8>,
    agent: Agent,
}

impl Webhook {
    /// # Errors
    /// A message that names the file, and the way out.
    pub(super) fn new(
        address: &str,
        secret: Option<&Path>,
        ca: Option<&Path>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let is_encrypted = address.starts_with("https://");
        if !is_encrypted && !address.starts_with("http://") {
            return Err(format!("webhook = {address:?}: write an address that begins with https://"));
        }
        let secret =
            secret.ok_or("a webhook needs secret = \"FILE\"; make one: (printf whsec_; openssl rand -base64 32)")?;
        let secret = read_secret(secret)?;
        let mut config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("espalierd/", env!("CARGO_PKG_VERSION")));
        if is_encrypted {
            config = config.tls_config(tls_config(ca, None).map_err(|error| error.to_string())?);
        }
        Ok(Self { address: address.to_owned(), secret, agent: config.build().into() })
    }

    /// Posts a delivery.
    pub(super) fn post(&self, delivery: &Delivery, now_s: u64) -> Result<(), NotDelivered> {
        let id = message_id(delivery);
        let sent = self
            .agent
            .post(&self.address)
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", &now_s.to_string())
            .header("webhook-signature", &sign(&self.secret, &id, now_s, &delivery.body))
            .send(&delivery.body);
        match sent.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => Ok(()),
            Ok(status) => Err(NotDelivered {
                why: format!("{} answers {status}", self.address),
                is_hopeless: status.as_u16() == GONE,
            }),
            Err(error) => Err(NotDelivered::now(format!("{}: {error}", self.address))),
        }
    }
}

/// The identifier by which a receiver recognises a repeated notification. The time distinguishes deliveries of different stores.
fn message_id(delivery: &Delivery) -> String {
    format!("msg_{}_{}", delivery.at_s, delivery.id)
}

fn sign(secret: &[u8], id: &str, now_s: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length");
    mac.update(format!("{id}.{now_s}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
}

fn read_secret(path: &Path) -> Result<Vec<u8>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let secret = text.trim().strip_prefix(PREFIX).and_then(|digits| BASE64.decode(digits).ok());
    secret.filter(|secret| SECRET_LEN.contains(&secret.len())).ok_or_else(|| {
        format!(
            "{}: a secret is {PREFIX} and the base64 of {} to {} bytes: (printf {PREFIX}; openssl rand -base64 32) > {0}",
            path.display(),
            SECRET_LEN.start(),
            SECRET_LEN.end()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with: printf 'msg_1.1674087231.{"a": 1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f -binary | base64
    #[test]
    fn a_signature_is_that_of_another_program() {
        let secret: Vec<u8> = (0..32).collect();
        assert_eq!(sign(&secret, "msg_1", 1_674_087_231, "{\"a\": 1}"), EXPECTED);
    }

    const EXPECTED: &str = "v1,PtRim3IphXeZ/PrauA54kSfVQP9ZDDuoedopz0GqlmI=";

    #[test]
    fn what_is_no_secret_or_no_address_is_refused() {
        let folder = std::env::temp_dir().join(format!("espalierd-secret-{}", std::process::id()));
        fs::create_dir(&folder).expect("a fresh folder");
        let file = folder.join("secret");
        for (text, fits) in [
            ("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", true),
            ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", false),
            ("whsec_AAECAw==\n", false),
            ("", false),
        ] {
            fs::write(&file, text).expect("a file");
            assert_eq!(read_secret(&file).is_ok(), fits, "{text:?}");
        }
        let refused = |address: &str, secret: Option<&Path>, ca: Option<&Path>| {
            fs::write(&file, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").expect("a file");
            Webhook::new(address, secret, ca, Duration::from_secs(1)).err().unwrap_or_default()
        };
        assert!(refused("ftp://x/", Some(&file), None).contains("begins with https://"));
        assert!(refused("http://x/", None, None).contains("needs secret"));
        assert!(refused("https://x/", Some(&file), Some(&file)).contains("no certificate"));
        assert_eq!(refused("http://x/", Some(&file), None), "");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
