# Everything that a person types. `make demo` and `make test` install what they need.
ESPALIER := target/release/espalier
RI2N := -p ri2n-cli -p ri2n-preload -p ri2n-c

.PHONY: help demo demo-controller build install test lint docs fuzz-check deny bpf-check fuzz soak bench bench-planner \
	bench-ri2n bench-hosts clean

help:
	@echo "make demo       a torus of sixteen switches against its own spanning tree, on real kernels"
	@echo "make demo-controller    espalierd over model switches, without root: cut cables and see what it does"
	@echo "make test       every test; SUITES=\"vm snmp\" for suites whose names contain a word (tools/test --list)"
	@echo "make build      $(ESPALIER)"
	@echo "make install    the programs, libraries, manual pages and completions into PREFIX (/usr/local)"
	@echo "make lint       format, clippy and documentation, warnings denied"
	@echo "make deny       licences and sources of dependencies"
	@echo "make docs       the documentation as a site, in target/docs"
	@echo "make fuzz       every parser for FUZZ_SECONDS (60) each"
	@echo "make soak       what takes too long for every commit"
	@echo "make bench      times of planning and checking; real traffic in the lab beside its prediction"
	@echo "make bench-hosts    hosts that tag: docs/benchmarks/bisection.md, failover.md, and what tagging costs"
	@echo "make bench-ri2n     RI2N beside TCP and MPTCP: docs/benchmarks/ri2n.md (LONG=1 for outages of a minute)"
	@echo "make bench-planner  our engines beside OpenSM's: docs/benchmarks/planner-*.md (SIZES=small, full, other or odd)"

build:
	@tools/setup build
	cargo build --release --locked -p espalier -p espalierd $(RI2N)

demo:
	@tools/setup lab
	cargo build --release --locked -p espalier
	$(ESPALIER) demo

demo-controller:
	@tools/setup build
	cargo build --release --locked -p espalierd
	target/release/espalierd demo

test:
	@tools/setup test
	@tools/test $(SUITES)

bpf-check:
	$(MAKE) -C crates/lab/bpf check
	$(MAKE) -C crates/ri2n/run/bpf check
	$(MAKE) -C crates/hosts/tagger/bpf check

lint:
	@tools/setup build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Fuzz targets are a workspace of their own: that they still compile is not seen elsewhere.
fuzz-check:
	cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz-check

docs:
	@tools/setup docs
	tools/book

deny:
	@tools/setup ci
	cargo deny --locked check bans licenses sources

FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(sort $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs))))
fuzz:
	@tools/setup fuzz
	RUSTC_BOOTSTRAP=1 cargo fuzz build --sanitizer none
	@for target in $(FUZZ_TARGETS); do \
		echo "fuzz: $$target, $(FUZZ_SECONDS) s"; \
		mkdir -p fuzz/corpus/$$target && \
		RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $$target fuzz/corpus/$$target testdata crates/switches/dialects/tests/golden -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=8192 -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

soak: fuzz
	cargo build --release --locked $(RI2N)
	@tests/ri2n/switch 64 || { code=$$?; [ $$code -eq 77 ] || exit $$code; }
	cargo build --release --locked -p espalier
	@crates/lab/vm/deploy || { code=$$?; [ $$code -eq 77 ] || exit $$code; }
	@crates/lab/vm/bond || { code=$$?; [ $$code -eq 77 ] || exit $$code; }
	@ALL=1 tests/deploy/cabling || { code=$$?; [ $$code -eq 77 ] || exit $$code; }
	SCHEDULES=20000 cargo test --release --locked -p rollout --test deploy
	ESPALIER_ETCD_FAULTS=60 ESPALIER_ETCD_TAKEOVERS=60 cargo test --release --locked -p records --test faults -- --nocapture
	ESPALIERD_CHAOS=100000 cargo test --locked -p espalierd --test chaos -- --nocapture
	ESPALIERD_FAULTS=200 cargo test --locked -p espalierd --test takeover -- --nocapture
	ESPALIERD_FAULTS=200 cargo test --locked -p espalierd --test partitions -- --nocapture
	ESPALIER_COMBINATIONS=1 cargo test --release --locked -p planner --test small_changes
	ESPALIER_FREEZES=10000 cargo test --release --locked -p sim --test frozen
	PROPTEST_CASES=20000 cargo test --release --locked -p fabric -p planner -p verify -p dialects -p rollout -p drivers

bench: build
	bench/run
	bench/lab
	bench/controller

SIZES ?= small
bench-planner:
	@tools/setup bench
	cargo build --release --locked -p espalier
	bench/bound > docs/benchmarks/bound.md
	bench/multipath > docs/benchmarks/multipath.md
	bench/other-traffic > docs/benchmarks/other-traffic.md
	SIZES=$(SIZES) bench/planner/run docs/benchmarks/planner-$(SIZES).md

bench-ri2n:
	@tools/setup test
	cargo build --release --locked -p ri2n-cli -p ri2n-preload
	bench/ri2n/run docs/benchmarks/ri2n.md

bench-hosts:
	@tools/setup hosts
	cargo build --release --locked -p espalier
	bench/bisection > docs/benchmarks/bisection.md
	bench/tagger
	bench/failover docs/benchmarks/failover.svg > docs/benchmarks/failover.md

PREFIX ?= /usr/local
install: build
	install -D -m 755 $(ESPALIER) $(DESTDIR)$(PREFIX)/bin/espalier
	$(ESPALIER) man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(ESPALIER) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/espalier
	$(ESPALIER) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_espalier
	$(ESPALIER) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/espalier.fish
	install -D -m 755 target/release/espalierd $(DESTDIR)$(PREFIX)/bin/espalierd
	target/release/espalierd man $(DESTDIR)$(PREFIX)/share/man/man1
	target/release/espalierd completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/espalierd
	target/release/espalierd completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_espalierd
	target/release/espalierd completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/espalierd.fish
	install -D -m 755 target/release/ri2n $(DESTDIR)$(PREFIX)/bin/ri2n
	install -D -m 755 target/release/libri2n_preload.so $(DESTDIR)$(PREFIX)/lib/ri2n/libri2n_preload.so
	crates/ri2n/c/build-library target/release/libri2n_c.a $(DESTDIR)$(PREFIX)/lib $(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig && mv $(DESTDIR)$(PREFIX)/lib/ri2n.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	install -D -m 644 crates/ri2n/c/include/ri2n.h $(DESTDIR)$(PREFIX)/include/ri2n.h
	install -D -m 644 crates/ri2n/c/man/ri2n.3 $(DESTDIR)$(PREFIX)/share/man/man3/ri2n.3
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in ri2n-proxy@ ri2n-broker@; do sed 's|/usr/local|$(PREFIX)|' crates/ri2n/run/systemd/$$unit.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit.service; done
	sed 's|/usr/local|$(PREFIX)|' crates/lab/systemd/espalier-switchd.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/espalier-switchd.service
	sed 's|/usr/local|$(PREFIX)|' crates/app/daemon/systemd/espalierd.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/espalierd.service
	target/release/ri2n man $(DESTDIR)$(PREFIX)/share/man/man1
	target/release/ri2n completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/ri2n
	target/release/ri2n completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_ri2n
	target/release/ri2n completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/ri2n.fish

clean:
	cargo clean
