# The package for Fedora, RHEL and their kin. rpmbuild itself finds which symbols of which libraries
# the binary needs.
make_rpm() {
    local name=throng-$package_version-1.$machine.rpm folder=$work/rpm/content share documents
    share=$folder/usr/share
    documents=$share/doc/throng
    copy_system "$folder" zsh/site-functions
    copy_files "$share/licenses/throng" LICENSE-APACHE LICENSE-MIT
    install -m 644 "$work/third-party.txt" "$share/licenses/throng/third-party.txt"
    copy_files "$documents" CHANGELOG.md
    set_times "$folder"
    write_spec "$folder" >"$work/rpm/throng.spec"
    # With a home of its own: no macros and no database of the user.
    HOME=$work/rpm rpmbuild -bb --quiet --target "$machine-linux" \
        --define "_topdir $work/rpm" --define "_rpmdir $work" --define "_rpmfilename $name" \
        "$work/rpm/throng.spec" >"$work/rpm/log" 2>&1 ||
        fail "rpmbuild: $(grep -m 1 error: "$work/rpm/log" || tail -n 1 "$work/rpm/log")" \
            "is \`rpmbuild --version\` 4.18 or newer?"
    move_out "$name"
}

# The content is as it is to be installed: nothing is stripped, compressed or checked any more.
write_spec() {
    cat <<END
%global _buildhost throng
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global debug_package %{nil}
%global _build_id_links none
%global __os_install_post %{nil}
# One thread: more cut the content into other pieces.
%global _binary_payload w12.zstdio
# Examples run other programs, which the package does not need.
%global __requires_exclude_from ^%{_datadir}/doc/
Name: throng
Version: $package_version
Release: 1
Summary: $SUMMARY
License: Apache-2.0 OR MIT
Packager: ${MAINTAINER//%/%%}
%description
$DESCRIPTION
%install
cp --archive "$1/." "%{buildroot}"
%files
%defattr(-, root, root)
%license %{_datadir}/licenses/throng
%{_datadir}/doc/throng
$(cd "$1" && find usr/bin usr/share/{man,bash-completion,zsh,fish} ! -type d -printf '/%p\n' | sort)
%changelog
* $(date --date="@$SOURCE_DATE_EPOCH" +'%a %b %d %Y') ${MAINTAINER//%/%%} - $package_version-1
- Package of commit $commit.
END
}
