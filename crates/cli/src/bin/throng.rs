//! The binary `throng`: all of it is in the library, which fuzz targets and tests can call too.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    cli::main()
}
