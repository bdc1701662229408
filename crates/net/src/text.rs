//! Tokens and keys as text, to be pasted, sent and stored in files: URL-safe base64 without
//! padding.

use base64ct::{Base64UrlUnpadded, Encoding};
use prescient_transport::{ConnectToken, Entropy, TokenKey};
use zeroize::Zeroizing;

use crate::error::TextError;

/// A token as text. It contains a secret: everyone who reads it can connect as this client.
pub fn token_to_text(token: &ConnectToken) -> Zeroizing<String> {
    Zeroizing::new(Base64UrlUnpadded::encode_string(&token.to_bytes()))
}

/// Reads the output of [`token_to_text`]; white space around it and line breaks in it are ignored.
pub fn token_from_text(text: &str) -> Result<ConnectToken, TextError> {
    let bytes = decode(text).ok_or(TextError::NoToken)?;
    ConnectToken::from_bytes(&bytes).map_err(TextError::Token)
}

/// A new key as text, for the files of a backend and its servers.
pub fn new_key(entropy: &mut dyn Entropy) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    entropy.fill(&mut *bytes);
    Zeroizing::new(Base64UrlUnpadded::encode_string(&*bytes))
}

/// Reads the output of [`new_key`].
pub fn key_from_text(text: &str) -> Result<TokenKey, TextError> {
    let bytes = decode(text).ok_or(TextError::NoKey)?;
    let bytes: [u8; KEY_LEN] = bytes.as_slice().try_into().map_err(|_| TextError::NoKey)?;
    TokenKey::new(bytes).map_err(TextError::Key)
}

fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let text: Zeroizing<String> = Zeroizing::new(text.split_whitespace().collect());
    let bytes = Base64UrlUnpadded::decode_vec(&text).ok()?;
    Some(Zeroizing::new(bytes))
}

const KEY_LEN: usize = 32;
