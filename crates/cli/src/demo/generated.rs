//! Made-up sessions for what the bundled real ones lack: a long one, images, a broken-off answer.
//!
//! Their titles say that they are generated.

use std::fmt::Write as _;

use serde_json::{Value, json};
use turnkeep_log::{CompleteError, Event};

use super::{
    pictures::Picture,
    script::{Call, Script},
};

/// How many turns the long session has.
pub(crate) const LONG_TURNS: usize = 64;

/// The modules that the long session works on, one after the other.
const MODULES: [&str; 16] = [
    "tokenizer",
    "parser",
    "resolver",
    "planner",
    "cache",
    "scheduler",
    "journal",
    "index",
    "session",
    "router",
    "encoder",
    "watcher",
    "metrics",
    "config",
    "snapshot",
    "replica",
];

/// A session long enough to page through.
pub(crate) fn long(start: i64) -> Result<Vec<Event>, CompleteError> {
    let mut script = Script::starting_at(start);
    script.title("Generated: sixty-four turns on a small database");
    for number in 0..LONG_TURNS {
        let module = MODULES.get(number % MODULES.len()).copied().unwrap_or("parser");
        script.wait(40_000);
        match number % 4 {
            0 => explain(&mut script, number, module),
            1 => change(&mut script, number, module),
            2 => investigate(&mut script, number, module),
            _ => plan(&mut script, number, module),
        }
    }
    script.finish()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn source_file(module: &str, number: usize) -> String {
    let mut file = format!("//! The {module}.\n\nuse std::collections::BTreeMap;\n\n");
    for line in 0..24 {
        let _ = write!(
            file,
            "/// Step {line} of the {module}.\npub fn step_{line}(input: u64) -> u64 {{\n    \
             input.rotate_left({}) ^ {}\n}}\n\n",
            (line + number) % 63,
            line * 7919 + number,
        );
    }
    file
}

fn explain(script: &mut Script, number: usize, module: &str) {
    script.prompt(&[text(&format!(
        "{}. How does the {module} decide what to do first? Read it before you answer, please.",
        number + 1
    ))]);
    script.work(
        &format!(
            "The question is about the order of work in the {module}. I should read the file."
        ),
        None,
        &[Call {
            name: "read",
            arguments: json!({"filePath": format!("src/{module}.rs"), "offset": 0, "limit": 200}),
            output: source_file(module, number),
            failed: false,
        }],
    );
    script.answer(&format!(
        "The {module} keeps a queue ordered by **deadline**, then by *arrival*:\n\n\
         1. `take_due` returns everything whose deadline has passed.\n\
         2. What is left is sorted by arrival, so nothing starves.\n\
         3. A step that fails goes back with twice its delay.\n\n\
         ```rust\nlet due = queue.take_due(now);\nfor step in due {{\n    run(step)?;\n}}\n```\n\n\
         The sort is stable, which is why two steps with one deadline keep their order."
    ));
}

fn change(script: &mut Script, number: usize, module: &str) {
    script.prompt(&[text(&format!(
        "{}. Rename `step_3` in the {module} to `rotate_and_mix`, and run its tests.",
        number + 1
    ))]);
    script.work(
        "A rename in one file, then the tests.",
        Some("I will change the definition and its callers, then run the tests."),
        &[
            Call {
                name: "edit",
                arguments: json!({
                    "filePath": format!("src/{module}.rs"),
                    "oldString": "pub fn step_3(", "newString": "pub fn rotate_and_mix(",
                }),
                output: format!("Edited src/{module}.rs: 1 replacement."),
                failed: false,
            },
            Call {
                name: "grep",
                arguments: json!({"pattern": "step_3\\b", "path": "src", "include": "*.rs"}),
                output: format!("src/{module}/tests.rs:41: assert_eq!(step_3(7), 56);"),
                failed: false,
            },
        ],
    );
    script.work(
        "One caller is left, in the tests.",
        None,
        &[Call {
            name: "bash",
            arguments: json!({
                "command": format!("cargo test -p demo {module}"),
                "description": "Run the tests of the module",
            }),
            output: format!(
                "error[E0425]: cannot find function `step_3` in this scope\n  \
                 --> src/{module}/tests.rs:41:16\n"
            ),
            failed: true,
        }],
    );
    script.work(
        "As expected: the caller in the tests must follow.",
        None,
        &[Call {
            name: "edit",
            arguments: json!({
                "filePath": format!("src/{module}/tests.rs"),
                "oldString": "step_3(7)", "newString": "rotate_and_mix(7)",
            }),
            output: format!("Edited src/{module}/tests.rs: 1 replacement."),
            failed: false,
        }],
    );
    script.answer(&format!(
        "Renamed in `src/{module}.rs` and in its one caller. The first test run failed on the \
         caller in `src/{module}/tests.rs`, which I then changed."
    ));
}

fn investigate(script: &mut Script, number: usize, module: &str) {
    script.prompt(&[text(&format!(
        "{}. The {module} is slow with ten thousand entries. Where does the time go?",
        number + 1
    ))]);
    let samples: Vec<_> = (0..120)
        .map(|line| {
            format!("{:>6.2}%  demo  {module}::step_{}\n", 31.0 / f64::from(line + 1), line % 24)
        })
        .collect();
    script.work(
        "A profile will tell. I will run the benchmark under perf.",
        None,
        &[Call {
            name: "bash",
            arguments: json!({
                "command": format!("perf record -g target/release/demo bench {module} && perf report --stdio"),
                "description": "Profile the benchmark",
            }),
            output: samples.concat(),
            failed: false,
        }],
    );
    script.answer(&format!(
        "About a third of it is `{module}::step_0`, which copies every entry to sort it.\n\n\
         | what | share |\n|---|---|\n| `step_0` | 31 % |\n| `step_1` | 16 % |\n| the rest | 53 % |\n\n\
         Sorting indices instead of entries would remove the copy."
    ));
}

fn plan(script: &mut Script, number: usize, module: &str) {
    script.prompt(&[text(&format!(
        "{}. Plan the work to split the {module} in two. Don't change anything yet.",
        number + 1
    ))]);
    script.answer(&format!(
        "## Splitting the {module}\n\n\
         - **Reading** moves to `{module}/read.rs`: everything that takes `&self`.\n\
         - **Writing** stays, and shrinks to half of what it is.\n\
         - The tests stay where they are until both halves build.\n\n\
         > Nothing outside of `src/{module}` has to change: the public names stay.\n\n\
         I would start with the readers, since they have no callers inside the module."
    ));
}

/// A session with images in it: of the page on a phone, as it was meant, and in its dark theme.
pub(crate) fn images(
    start: i64,
    [phone, design, dark]: &[Picture; 3],
) -> Result<Vec<Event>, CompleteError> {
    let image = |picture: &Picture| {
        json!({"type": "image", "attachment": {
            "attachmentId": picture.id(), "mediaType": "image/png", "bytes": picture.png.len(),
            "width": picture.width, "height": picture.height, "name": picture.name,
        }})
    };
    let mut script = Script::starting_at(start);
    script.title("Generated: screenshots of a page that does not fit a phone");
    script.prompt(&[
        text("The settings page overflows on a phone. Here is how it looks, and how it should."),
        image(phone),
        image(design),
    ]);
    script.work(
        "The first image shows a table wider than the screen. The stylesheet should say why.",
        Some("The table of shortcuts is wider than the screen. Let me look at its styles."),
        &[Call {
            name: "grep",
            arguments: json!({"pattern": "min-width", "path": "web", "include": "*.css"}),
            output: "web/settings.css:88:  min-width: 640px;".to_owned(),
            failed: false,
        }],
    );
    script.answer(
        "`web/settings.css` gives the table of shortcuts `min-width: 640px`. Wrapping it in a box \
         that scrolls on its own keeps the page inside the screen:\n\n\
         ```css\n.shortcuts {\n  overflow-x: auto;\n}\n```",
    );
    script.wait(90_000);
    script.prompt(&[text("Better. And in the dark theme?"), image(dark)]);
    script.answer("It fits there too; only the focus ring is hard to see on the dark ground.");
    script.finish()
}

/// A session that stops in the middle of an answer.
pub(crate) fn broken_off(start: i64) -> Result<Vec<Event>, CompleteError> {
    let mut script = Script::starting_at(start);
    script.title("Generated: the power went in the middle of an answer");
    script.prompt(&[text("Which of our tests take longest?")]);
    script.work(
        "I will let the test runner tell.",
        None,
        &[Call {
            name: "bash",
            arguments: json!({"command": "cargo nextest run", "description": "Run all tests"}),
            output: "Summary [12.402s] 318 tests run: 318 passed".to_owned(),
            failed: false,
        }],
    );
    script.answer("All 318 pass in 12.4 s; the slowest is `storm`, with 4.1 s.");
    script.wait(60_000);
    script.prompt(&[text("Explain what `storm` does, step by step.")]);
    script
        .break_off("`storm` starts eight processes that all write to the same store. Each of them");
    script.finish()
}
