# For scripts that take a binary: the machine that it is for, and what strips and runs it here.

# Sets what `use_machine` does, for the machine that a binary is for.
find_machine() {
    local named
    named=$(readelf --file-header "$1" 2>/dev/null | sed -n 's/ *Machine: *//p') || true
    case $named in
        *X86-64) use_machine x86_64 ;;
        AArch64) use_machine aarch64 ;;
        *) fail "$1 is for another architecture" "build it for x86-64 or AArch64" ;;
    esac
}

# Sets `machine`, `architecture` (Debian's name of it) and `strip`. For another machine than this one
# it also sets `sysroot`, the folder of its libraries, and `emulator`, the words before the name of
# a binary in a command, and refuses to go on without them.
use_machine() {
    machine=$1 strip=strip sysroot="" emulator=()
    architecture=$([[ $machine == x86_64 ]] && echo amd64 || echo arm64)
    [[ $machine != "$(uname --machine)" ]] || return 0
    strip=$machine-linux-gnu-strip
    sysroot=/usr/$machine-linux-gnu
    emulator=("qemu-$machine-static" -L "$sysroot")
    require "$strip" "${emulator[0]}"
}
