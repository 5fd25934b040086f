//! A complete task: plan, thought, read, edit, run. The bug and its fix are real.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::turn::{Choice, Step, Turn, text_content};
use super::work::{Change, Run, change, command};
use crate::host::os::private;

/// The script with the bug and with the fix.
const OLD: &str = "# Prints a receipt. Each line of the order: how many, what, cents for one.
total=0
while read -r count item price; do
    printf '%2d %-8s %5d\\n' \"$count\" \"$item\" \"$price\"
    total=$((total + price))
done < order.txt
printf '\\033[1;32m   total    %5d\\033[0m\\n' \"$total\"
";
const NEW: &str = "# Prints a receipt. Each line of the order: how many, what, cents for one.
total=0
while read -r count item price; do
    cost=$((count * price))
    printf '%2d %-8s %5d\\n' \"$count\" \"$item\" \"$cost\"
    total=$((total + cost))
done < order.txt
printf '\\033[1;32m   total    %5d\\033[0m\\n' \"$total\"
";
const ORDER: &str = "3 apples 40\n1 bread 250\n";

const STEPS: [&str; 3] =
    ["Find how the total is calculated", "Multiply each price by its count", "Print a receipt"];

/// Fixes the receipt, as far as the user permits it.
pub(super) fn fix(turn: &Turn) -> Step {
    let script = match turn.scratch().and_then(|dir| prepare(&dir)) {
        Ok(script) => script,
        Err(error) => return turn.say(&format!("Could not create a scratch folder: {error}.\n")),
    };
    show_plan(turn, 0)?;
    turn.think(
        "The total is too low. Either the order is parsed incorrectly, or the counts are missing from the \
         sum.",
    )?;
    read(turn, &script)?;
    turn.say("The script reads the count of each item, but adds up the prices **without** it.\n\n")?;
    show_plan(turn, 1)?;
    match change(turn, &script, OLD, NEW)? {
        Change::Written => {}
        Change::Not(Choice::Forbidden) => {
            return turn.say("The mode is *Plan only*, so I stop after the plan.\n");
        }
        Change::Not(_) => {
            return turn
                .say("You rejected the edit, so the script is unchanged. Run `/fix` again at any time.\n");
        }
        Change::Failed(why) => return turn.say(&format!("Could not write the file: {why}\n")),
    }
    show_plan(turn, 2)?;
    let dir = script.parent().unwrap_or(&script);
    match command(turn, "Print a receipt", "sh receipt.sh", dir)? {
        Run::Ended(Some(0)) => {
            show_plan(turn, STEPS.len())?;
            turn.say("Three apples now cost `120`, and the total is correct: `370`.\n")
        }
        Run::Ended(_) => turn.say("The script failed, so the fix is untested.\n"),
        Run::Not(_) => turn.say("The file is changed, but the script was not run, so the fix is untested.\n"),
        Run::Failed(why) => turn.say(&format!("Could not start the command: {why}\n")),
        Run::NoTerminal(id) => {
            let text = "Terminals are disabled in this client.";
            turn.tool_update(&id, "failed", json!({"content": [text_content(text)]}))?;
            turn.say(
                "The file is changed, but terminals are disabled in this client, so the fix is untested.\n",
            )
        }
    }
}

/// Writes the buggy script and an order into the folder.
fn prepare(dir: &Path) -> std::io::Result<PathBuf> {
    let script = dir.join("receipt.sh");
    private::replace(&script, OLD.as_bytes())?;
    private::replace(&dir.join("order.txt"), ORDER.as_bytes())?;
    Ok(script)
}

fn show_plan(turn: &Turn, done: usize) -> Step {
    let entries: Vec<Value> = STEPS
        .iter()
        .enumerate()
        .map(|(at, content)| {
            let status = match at.cmp(&done) {
                std::cmp::Ordering::Less => "completed",
                std::cmp::Ordering::Equal => "in_progress",
                std::cmp::Ordering::Greater => "pending",
            };
            json!({"content": content, "priority": "medium", "status": status})
        })
        .collect();
    turn.update(&json!({"sessionUpdate": "plan", "entries": entries}))
}

/// Reads the script directly, because the scratch folder is outside the session's folders.
fn read(turn: &Turn, script: &Path) -> Step {
    let details = json!({"locations": [{"path": script, "line": 1}], "rawInput": {"path": script}});
    let id = turn.tool("Read receipt.sh", "read", details)?;
    turn.pause(400)?;
    match fs::read_to_string(script) {
        Ok(text) => turn.tool_update(&id, "completed", json!({"content": [text_content(&text)]})),
        Err(error) => turn.tool_update(&id, "failed", json!({"content": [text_content(&error.to_string())]})),
    }
}
