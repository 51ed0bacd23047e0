//! Servers that runs are aimed at: their zone and a key that opens it.

use lab::target::{BindOptions, BindTarget, TsigKey, Zone};
use proto::tsig::Key;

/// A zone with the names `test-record-1..100` that [`Load`] asks for.
pub(crate) fn zone() -> Zone {
    Zone::with_records(100, 1)
}

/// BIND that answers signed queries alone, and the key to sign with.
pub(crate) fn bind_for_signed_queries() -> (BindTarget, Key) {
    let key = TsigKey {
        name: "lab-key".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret_base64: "c2VjcmV0IG9mIHRoZSBsYWI=".to_owned(),
    };
    let signer = key.argument().parse().unwrap();
    let options = BindOptions {
        query_key: Some(key),
        ..BindOptions::new(zone())
    };
    (BindTarget::start(&options).unwrap(), signer)
}
