//! Flags of `throng serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Flags of `throng serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Folder with run records, searched with its subfolders
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Serve the pages at this address; port 0 has the system choose one, which is printed. Other
    /// addresses than those of loopback need the token in the printed address (see docs/serve.md)
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) web: SocketAddr,
}
