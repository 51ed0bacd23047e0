"""Side-by-side measurement of throng and dnsperf; `bench/run` is the way in."""
