# The habits of this repository. `just` lists them.

[private]
default:
    @just --list --unsorted

# Compile everything, tests included
check:
    cargo check --workspace --all-targets

# All that must hold before a change lands
test:
    ./scripts/test

# Format the code
fmt:
    cargo fmt --all

# What clippy has to say
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Build the API documentation; `just doc --open` shows it
doc *args:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps {{ args }}

# Write docs/openapi.json anew, after a route has changed
openapi:
    TURNKEEP_UPDATE_OPENAPI=1 cargo test --package turnkeep-host --test openapi the_document

# Read the golden logs and compare; fails when no test has "golden" in its name
golden:
    cargo nextest run --workspace golden

# Crash the store on a simulated disk, 10,000 times; `just sim SEED` repeats one run
sim seed="":
    TURNKEEP_SIM_SEED={{ seed }} TURNKEEP_SIM_CRASH_POINTS=10000 cargo test --release --package turnkeep-store \
        --test simulation -- --nocapture {{ if seed == "" { "" } else { "storms" } }}

# What an append costs beside what the disk costs; `just bench append DIRECTORY` measures that disk
bench name="append" *args:
    cargo bench --package turnkeep-store --bench {{ name }} -- {{ args }}

# How many clients of the event channels one host carries, and how fast
bench-events *args:
    cargo bench --package turnkeep-host --bench fanout -- {{ args }}

# Kill processes that write, for so many seconds, and count what is lost
storm seconds="30":
    TURNKEEP_STORM_SECONDS={{ seconds }} cargo test --package turnkeep-store --test storm -- --nocapture

# Read what nobody would write, each target for so many seconds; `TURNKEEP_FUZZ_SEED` repeats one run
fuzz seconds="60":
    TURNKEEP_FUZZ_SECONDS={{ seconds }} cargo test --package turnkeep-store --package turnkeep-turns --test fuzz -- --nocapture

# Licences, advisories, duplicates, sources (needs cargo-deny and a network)
deny:
    cargo deny check

# The demo host on http://127.0.0.1:7420; `just demo --open` opens a browser
demo *args:
    cargo run --release -- demo {{ args }}

# A real OpenCode server with the scripted model, until Ctrl-C
opencode *args:
    cargo run --package turnkeep-test-opencode -- {{ args }}
