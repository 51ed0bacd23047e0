# What packages contain, in the places of an archive or of a system.

# Manual pages, completions, licences and, with mdBook, the guides as HTML: what does not depend on
# the kind of package.
make_content() {
    local shell
    run_throng man --output "$work/man"
    for shell in bash zsh fish; do
        run_throng completions "$shell" >"$work/completions.$shell"
    done
    run_throng licenses >"$work/third-party.txt"
    can_make mdbook "the guides as HTML" || return 0
    mdbook build --dest-dir "$work/html" "$ROOT" >"$work/mdbook.log" 2>&1 ||
        fail "mdbook: $(tail -n 1 "$work/mdbook.log")" "the site is \`mdbook build\` in $ROOT"
    install -m 644 "$ROOT/packaging/html-licenses.txt" "$work/html/licenses.txt"
}

# Copies those files of the repository below the paths given that users read or run. Charts of
# results are large, and can be made again.
copy_files() {
    local to=$1 path mode
    shift
    while IFS= read -r -d '' path; do
        mode=644
        [[ ! -x $ROOT/$path ]] || mode=755
        install -D -m "$mode" "$ROOT/$path" "$to/$path"
    done < <(cd "$ROOT" && git ls-files -z -- "$@" ':!:*/result.html')
}

# README and guides, in FOLDER.
copy_guides() {
    copy_files "$1" README.md docs
    [[ ! -d $work/html ]] || cp -r "$work/html" "$1/html"
}

# The binary, links, manual pages and completions below FOLDER, in these places of it.
copy_program() {
    local folder=$1 bin=$2 man=$3 bash=$4 zsh=$5 fish=$6
    install -D -m 755 "$work/throng" "$folder/$bin/throng"
    # `kubectl throng` runs it.
    ln -s throng "$folder/$bin/kubectl-throng"
    install -D -m 644 -t "$folder/$man" "$work"/man/*
    install -D -m 644 "$work/completions.bash" "$folder/$bash"
    install -D -m 644 "$work/completions.zsh" "$folder/$zsh"
    install -D -m 644 "$work/completions.fish" "$folder/$fish"
}

# What a system has of Throng, below FOLDER, but for licences and change logs. Systems differ in the
# place of completions of zsh, ZSH.
copy_system() {
    local folder=$1 zsh=$2 man=$1/usr/share/man/man1 documents=$1/usr/share/doc/throng
    copy_program "$folder" usr/bin usr/share/man/man1 \
        usr/share/bash-completion/completions/throng \
        "usr/share/$zsh/_throng" usr/share/fish/vendor_completions.d/throng.fish
    gzip -9n "$man"/*
    ln -s throng.1.gz "$man/kubectl-throng.1.gz"
    copy_guides "$documents"
    copy_files "$documents/examples" scenarios experiments deploy
}

# All times are that of the commit.
set_times() {
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}
