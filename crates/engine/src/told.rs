//! How queries ended, for those who follow them: scripts and observers.

use script::End;

/// How a query ended, with what came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'a> {
    /// With this response.
    Response(&'a [u8]),
    /// Without one.
    End(End),
}
