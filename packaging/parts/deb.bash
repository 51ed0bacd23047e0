# The package for Debian and its kin.
make_deb() {
    local name=throng_$package_version-1_$architecture.deb folder=$work/deb documents depends size
    documents=$folder/usr/share/doc/throng
    copy_system "$folder" zsh/vendor-completions
    install -m 644 "$work/third-party.txt" "$documents/third-party.txt"
    install -m 644 "$ROOT/CHANGELOG.md" "$documents/changelog"
    write_changelog >"$documents/changelog.Debian"
    write_copyright >"$documents/copyright"
    # As Debian's policy has it: change logs and long documents.
    gzip -9n "$documents"/{changelog,changelog.Debian,third-party.txt}
    # No bug of Debian asks for the package.
    mkdir -p "$folder/usr/share/lintian/overrides"
    echo "throng: initial-upload-closes-no-bugs" >"$folder/usr/share/lintian/overrides/throng"
    depends=$(dependencies "$work/throng")
    mkdir -m 755 "$folder/DEBIAN"
    (cd "$folder" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$folder/DEBIAN/md5sums"
    write_control "$depends" "$folder" >"$folder/DEBIAN/control"
    set_times "$folder"
    # More threads cut the content into other pieces.
    dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$folder" "$work/$name" >/dev/null
    size=$(stat --format=%s "$work/$name")
    ((size <= DEB_SIZE_MAX)) || fail "$name has $size bytes, at most $DEB_SIZE_MAX" \
        "look what is in it: is the binary built by \`packaging/build\`?"
    move_out "$name"
}

# Says which packages of Debian have the libraries that a program is linked to, in the versions
# that its symbols need.
dependencies() {
    local libraries versions library newest depends=()
    libraries=$(readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    versions=$(readelf --version-info --wide "$1" | grep -o 'Name: [A-Z]*_[0-9.]*' | sort -u)
    for library in $libraries; do
        case $library in
            # All of glibc: before 2.34 it was several.
            libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*) ;;
            libgcc_s.so.1)
                newest=$(sed -n 's/Name: GCC_//p' <<<"$versions" | sort -V | tail -n 1)
                depends+=("libgcc-s1 (>= $newest)")
                ;;
            *)
                fail "the binary is linked to $library" \
                    "add its package to packaging/parts/deb.bash"
                ;;
        esac
    done
    newest=$(sed -n 's/Name: GLIBC_//p' <<<"$versions" | sort -V | tail -n 1)
    depends+=("libc6 (>= $newest)")
    printf '%s\n' "${depends[@]}" | sort | paste -s -d , | sed 's/,/, /g'
}

write_changelog() {
    echo "throng ($package_version-1) unstable; urgency=medium"
    printf '\n  * Package of commit %s.\n\n' "$commit"
    echo " -- $MAINTAINER  $(date --date="@$SOURCE_DATE_EPOCH" --rfc-email)"
}

write_copyright() {
    echo "Throng is licensed under the Apache License 2.0 or the MIT licence, at your choice."
    echo "On Debian systems the former is in /usr/share/common-licenses/Apache-2.0; the latter is"
    echo "below. The licences of the software in the binary are in third-party.txt.gz beside this"
    echo "file; \`throng licenses\` prints them. Those of mdBook, which makes the guides as HTML,"
    echo "are in html/licenses.txt."
    echo
    cat "$ROOT/LICENSE-MIT"
}

write_control() {
    local kilobytes
    kilobytes=$(find "$2" -type f -printf '%s\n' | awk '{ n += int(($1 + 1023) / 1024) }
        END { print n }')
    cat <<END
Package: throng
Version: $package_version-1
Architecture: $architecture
Maintainer: $MAINTAINER
Installed-Size: $kilobytes
Depends: $1
Section: net
Priority: optional
Description: $SUMMARY
$(sed 's/^/ /' <<<"$DESCRIPTION")
END
}
