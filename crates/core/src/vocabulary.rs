//! The words of this field, each an enum with its name in policies, reports and messages, and a
//! set type that a `const` can hold.

/// A word that is not in a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{word}`; known: {}", known.join(", "))]
pub struct UnknownWord {
    /// What was expected, such as `op` or `dtype`.
    pub kind: &'static str,
    /// What was found.
    pub word: String,
    /// Every word of the vocabulary.
    pub known: &'static [&'static str],
}

/// Declares an enum of named words and the set type over it.
macro_rules! vocabulary {
    (
        $kind:literal,
        $(#[$meta:meta])*
        pub enum $name:ident in $set:ident {
            $($(#[$vmeta:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];
            /// The name of every word, in declaration order.
            pub const NAMES: &'static [&'static str] = &[$($word,)+];

            /// The word as policies, reports and messages write it.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::vocabulary::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match Self::NAMES.iter().position(|n| *n == word) {
                    Some(at) => Ok(Self::ALL[at]),
                    None => Err($crate::vocabulary::UnknownWord {
                        kind: $kind,
                        word: word.to_owned(),
                        known: Self::NAMES,
                    }),
                }
            }
        }

        #[doc = concat!("A set of [`", stringify!($name), "`] that a `const` can hold.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $set(u32);

        impl $set {
            /// No word.
            pub const NONE: $set = $set(0);
            /// Every word.
            pub const ALL: $set = $set::of($name::ALL);

            /// The set of these words.
            pub const fn of(words: &[$name]) -> $set {
                let mut bits = 0;
                let mut at = 0;
                while at < words.len() {
                    bits |= 1 << words[at] as u32;
                    at += 1;
                }
                $set(bits)
            }

            /// Is this word in the set?
            pub const fn contains(self, word: $name) -> bool {
                self.0 & (1 << word as u32) != 0
            }

            /// Are all words of `other` in this set?
            pub const fn covers(self, other: $set) -> bool {
                self.0 & other.0 == other.0
            }

            /// The words in both sets.
            pub const fn intersection(self, other: $set) -> $set {
                $set(self.0 & other.0)
            }

            /// The words in either set.
            pub const fn union(self, other: $set) -> $set {
                $set(self.0 | other.0)
            }

            /// The words of this set that are not in `other`.
            pub const fn without(self, other: $set) -> $set {
                $set(self.0 & !other.0)
            }

            /// Is there no word in it?
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The words, in declaration order.
            pub fn iter(self) -> impl Iterator<Item = $name> {
                $name::ALL.iter().copied().filter(move |w| self.contains(*w))
            }
        }

        impl FromIterator<$name> for $set {
            fn from_iter<I: IntoIterator<Item = $name>>(words: I) -> Self {
                words.into_iter().fold($set::NONE, |set, word| set.union($set::of(&[word])))
            }
        }

        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                if self.is_empty() {
                    return f.write_str("none");
                }
                for (at, word) in self.iter().enumerate() {
                    write!(f, "{}{word}", if at == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{{{self}}}")
            }
        }
    };
}

pub(crate) use vocabulary;
