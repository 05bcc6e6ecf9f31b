//! What a folder of rendered files holds: which plan, which switch, which language.
//!
//! ```text
//!   {"espalier_rendered":1,"plan":"5d41…","since":null,
//!    "parts":[{"switch":"s0","target":"comware7","phase":null,"files":["s0.cfg"]}, …]}
//! ```

use serde_json::{Value, json};
use thiserror::Error;

use crate::Target;
use switch_model::Phase;

/// The manifest's name in a folder of rendered files.
pub const MANIFEST_FILE: &str = "rendered.json";
/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// The files of one switch, for one phase if it is a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The switch.
    pub switch: String,
    /// Its language.
    pub target: Target,
    /// When it is to be done; none for a full configuration among others.
    pub phase: Option<Phase>,
    /// The files, relative to the folder.
    pub files: Vec<String>,
}

/// What a folder of rendered files holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The digest of the plan.
    pub plan: String,
    /// The digest of the plan that it is a difference from.
    pub since: Option<String>,
    /// The files, in the order of the plan's switches, and of phases.
    pub parts: Vec<Part>,
}

/// Why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a list of rendered files: {0}")]
pub struct ManifestError(String);

impl Manifest {
    /// As text, a line a part.
    pub fn to_text(&self) -> String {
        let parts: Vec<String> = (self.parts.iter())
            .map(|part| {
                let phase = part.phase.map(Phase::folder);
                let Part { switch, target, files, .. } = part;
                json!({ "switch": switch, "target": target.name(), "phase": phase, "files": files }).to_string()
            })
            .collect();
        let (plan, since) = (json!(self.plan), json!(self.since));
        format!(
            "{{\"espalier_rendered\":{VERSION},\"plan\":{plan},\"since\":{since},\n\"parts\":[\n{}\n]}}\n",
            parts.join(",\n")
        )
    }

    /// Reads a manifest. File names that lead out of the folder are refused.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let wrong = |message: &str| ManifestError(message.to_owned());
        let value: Value = serde_json::from_str(text).map_err(|error| ManifestError(error.to_string()))?;
        if value["espalier_rendered"].as_u64() != Some(VERSION) {
            return Err(wrong("it is of another version, or of another kind"));
        }
        let text = |value: &Value, what: &str| {
            value.as_str().map(str::to_owned).ok_or_else(|| ManifestError(format!("{what} is no text")))
        };
        let parts = value["parts"].as_array().ok_or_else(|| wrong("parts are no list"))?;
        let part = |part: &Value| -> Result<Part, ManifestError> {
            let target = text(&part["target"], "target")?.parse();
            let phase = match &part["phase"] {
                Value::Null => None,
                phase => {
                    let known = Phase::ALL.into_iter().find(|known| phase.as_str() == Some(known.folder()));
                    Some(known.ok_or_else(|| wrong("there is no such phase"))?)
                }
            };
            let files = part["files"].as_array().ok_or_else(|| wrong("files are no list"))?;
            let files: Vec<String> = files.iter().map(|file| text(file, "file")).collect::<Result<_, _>>()?;
            let leads_out =
                |file: &String| file.starts_with('/') || file.split('/').any(|part| part == ".." || part.is_empty());
            if files.iter().any(leads_out) {
                return Err(wrong("a file's name leads out of the folder"));
            }
            Ok(Part {
                switch: text(&part["switch"], "switch")?,
                target: target.map_err(|error: crate::RenderError| ManifestError(error.to_string()))?,
                phase,
                files,
            })
        };
        Ok(Self {
            plan: text(&value["plan"], "plan")?,
            since: value["since"].as_str().map(str::to_owned),
            parts: parts.iter().map(part).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let part = |phase| Part {
            switch: "s\"0".to_owned(),
            target: Target::Comware7,
            phase,
            files: vec!["2-fill/s0.cfg".to_owned()],
        };
        Manifest {
            plan: "5d".to_owned(),
            since: Some("41".to_owned()),
            parts: vec![part(None), part(Some(Phase::Fill))],
        }
    }

    #[test]
    fn reads_what_it_writes() {
        assert_eq!(Manifest::parse(&manifest().to_text()), Ok(manifest()));
    }

    #[test]
    fn refuses_what_leads_out_of_the_folder() {
        for file in ["../s0.cfg", "/etc/passwd", "a/../../b", "a//b"] {
            let mut manifest = manifest();
            manifest.parts[0].files = vec![file.to_owned()];
            assert!(Manifest::parse(&manifest.to_text()).is_err(), "{file}");
        }
        assert!(Manifest::parse("{}").is_err());
    }
}
