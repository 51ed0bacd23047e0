//! The binary `throng`: all of it is in the library, which fuzz targets and tests can call too.

#![forbid(unsafe_code)]

#[global_allocator]
static MEMORY: driver::memory::Memory = driver::memory::Memory;

fn main() -> std::process::ExitCode {
    cli::main()
}
