# For the scripts of this folder: settings of the shell, errors, and the programs that they run.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C TZ=UTC
umask 022

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly ROOT
# The mdBook that servers/prepare pins, before any other.
PATH=${THRONG_PREPARED_SERVERS:-$ROOT/target/servers}/mdbook/bin:$PATH

# What makes each program available.
readonly -A CURES=(
    [strip]="apt-get install binutils" [dpkg-deb]="apt-get install dpkg"
    [rpmbuild]="apt-get install rpm" [gpg]="apt-get install gnupg" [git]="apt-get install git"
    [cargo]="install Rust from https://rustup.rs" [mdbook]="run \`servers/prepare\`"
    [python3]="apt-get install python3-pip" [readelf]="apt-get install binutils"
    [make]="apt-get install make" [gcc]="apt-get install gcc libc6-dev"
    [aarch64-linux-gnu-strip]="apt-get install binutils-aarch64-linux-gnu"
    [qemu-aarch64-static]="apt-get install qemu-user-static libc6-arm64-cross"
    [x86_64-linux-gnu-strip]="apt-get install binutils-x86-64-linux-gnu"
    [qemu-x86_64-static]="apt-get install qemu-user-static libc6-amd64-cross"
)

fail() {
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 2
}

require() {
    local program
    for program; do
        command -v "$program" >/dev/null ||
            fail "\`$program\` is not installed" "${CURES[$program]}"
    done
}

# True if the program $1 is installed; otherwise reports that $2 is left out.
can_make() {
    command -v "$1" >/dev/null && return
    echo "left out: $2; \`$1\` is not installed: ${CURES[$1]}" >&2
    return 1
}
