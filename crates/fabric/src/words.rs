//! Enumerations whose values are written as words: on the command line, in files and in messages.

/// A value that is written as one of a few words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident {
        $(#[doc = $about:literal] $(#[$more:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $about] $(#[$more])* $variant,)+
        }

        impl $name {
            /// Every value, in the order in which help texts list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it means, in a line for help texts.
            pub fn about(self) -> &'static str {
                let sentence = match self { $(Self::$variant => $about,)+ };
                sentence.trim().trim_end_matches('.')
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|value| value.word()).collect();
                    format!("{text:?} is none of {}", known.join(", "))
                })
            }
        }
    };
}

pub(crate) use words;
