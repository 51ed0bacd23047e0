//! How queries ended, for scripts and observers.

use script::End;

/// How a query ended, with its response if one came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueryEnd<'a> {
    /// With this response.
    Response(&'a [u8]),
    /// Without one.
    End(End),
}
