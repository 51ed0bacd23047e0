# What is linked into the binary, as CycloneDX 1.5: name, version, licence and hash of each crate.
make_bill() {
    cargo tree --manifest-path "$ROOT/Cargo.toml" --offline --locked --package cli \
        --edges normal,no-proc-macro --prefix none --format '{p}|{l}' |
        sed -n 's/ (\*)$//; s/^\([^ ]*\) v\([^ |]*\)|/\1 \2|/p' | sort -u >"$work/crates"
    awk -v version="$version" -v time="$(date --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" '
        NR == FNR {
            gsub(/"/, "")
            if ($1 == "name") name = $3
            if ($1 == "version") release = $3
            if ($1 == "checksum") hashes[name " " release] = $3
            next
        }
        FNR == 1 {
            print "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.5\", \"version\": 1,"
            print "\"metadata\": {\"timestamp\": \"" time "\", \"component\":"
            print "{\"type\": \"application\", \"name\": \"throng\", \"version\": \"" version "\","
            print "\"licenses\": [{\"expression\": \"Apache-2.0 OR MIT\"}]}},"
            printf "\"components\": ["
        }
        {
            split($0, parts, "|")
            split(parts[1], crate, " ")
            gsub("/", " OR ", parts[2])
            purl = "pkg:cargo/" crate[1] "@" crate[2]
            printf "%s\n{\"type\": \"library\", \"bom-ref\": \"%s\", ", comma, purl
            printf "\"name\": \"%s\", \"version\": \"%s\", ", crate[1], crate[2]
            printf "\"purl\": \"%s\",\n\"licenses\": [{\"expression\": \"%s\"}],\n", purl, parts[2]
            printf "\"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"%s\"}]}", hashes[parts[1]]
            comma = ","
        }
        END { print "]}" }' "$ROOT/Cargo.lock" "$work/crates" >"$work/throng-$version.cdx.json"
    move_out "throng-$version.cdx.json"
}
