//! Five systems, each in the form of its document and of its code, against their official twins: whatever the
//! form, the user must end up with the same state.
//!
//! Each form writes the script of an agent (`tongues`); the user does the same with all of them, as far as the
//! system can it: prompts with text, thoughts, tools, a plan and a diff; permissions allowed, rejected and
//! cancelled; a cancel in mid-turn and a prompt after it; modes, models, options; a list; a crash and what
//! follows it; a copy.

mod tongues;

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use parlor::app::flow;
use parlor::model::{Action, ConfigValue};

use self::tongues::{
    ActiveContextCode, ActiveContextDocument, BanjoCode, BanjoDocument, Can, ElephantCode, ElephantDocument,
    Official, OpenOxide, OxideForm, Reopen, Second, Tongue, ZeptoClawCode, ZeptoClawDocument,
};
use super::habits::scripted_agent;
use super::rig::{Rig, agent, digest};

/// What the agent does in the whole play.
fn script(tongue: &dyn Tongue) -> String {
    let can = tongue.can();
    let mut script = format!(". 1\n{}{}", tongue.initialize(), tongue.new_session());
    script += &tongue.prompt("one");
    if can.thinks {
        script += &tongue.think("hm");
    }
    script += &tongue.say(&["Hello to", " you."]);
    if can.tools {
        script += &tongue.tool_begin("t1");
        script += &tongue.tool_end("t1", "out");
        script += &tongue.diff("src/a.rs");
    }
    if can.plans {
        script += &tongue.plan();
    }
    if can.tools {
        script += &tongue.say(&["Done."]);
    }
    script += &tongue.end("end_turn");
    if can.asks {
        script += &tongue.prompt("two");
        script += &tongue.ask(7, "t2");
        script += "> \"yes\"\n";
        script += &tongue.say(&["It was allowed."]);
        script += &tongue.ask(7, "t3");
        script += "> \"no\"\n";
        script += &tongue.say(&["It was rejected."]);
        script += &tongue.end("end_turn");
    }
    script += &tongue.prompt("three");
    script += &tongue.say(&["Working"]);
    if can.asks {
        script += &tongue.ask(8, "t4");
    }
    script += &tongue.cancel();
    script += &tongue.end("cancelled");
    script += &tongue.after_cancel();
    script += &tongue.prompt("four");
    script += &tongue.say(&["Here again."]);
    script += &tongue.end("end_turn");
    if can.modes {
        script += &tongue.mode("plan");
    }
    if can.models {
        script += &tongue.model("big");
    }
    if can.options {
        script += &tongue.option();
    }
    if can.lists {
        script += &tongue.list();
    }
    script += &tongue.prompt("five");
    script += &tongue.say(&["Half a"]);
    script += "! 3\n. 2\n";
    script += &tongue.initialize();
    script += &tongue.reopen();
    script += &tongue.prompt("six");
    script += &tongue.say(&["After the crash."]);
    script += &tongue.end("end_turn");
    if can.forks {
        script += &tongue.fork("s2");
        let copy = tongue.prompt("seven") + &tongue.say(&["In the copy."]) + &tongue.end("end_turn");
        script += &copy.replace("\"s1\"", "\"s2\"");
    }
    script
}

/// Plays it, and tells what the user is left with.
fn play(tongue: &dyn Tongue) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script(tongue)).unwrap();
    let mut spec = agent(scripted_agent(), &[file.to_str().unwrap()]);
    spec.wire.profile = tongue.profile();
    spec.wire.protocol = tongue.protocol();
    let can = tongue.can();
    let mut rig = Rig::start(folder.path(), spec);
    rig.wait_ready();
    rig.ask("one");
    if can.asks {
        rig.prompt("two");
        rig.wait_ask();
        rig.act(Action::Choose(1));
        rig.wait_text("It was allowed.");
        rig.wait_ask();
        rig.act(Action::Choose(2));
        rig.wait_idle();
    }
    rig.prompt("three");
    rig.wait_text("Working");
    if can.asks {
        rig.wait_ask();
    }
    rig.act(Action::ClearOrQuit);
    rig.wait_idle();
    rig.wait_ready();
    rig.ask("four");
    rig.wait_text("Here again.");
    rig.wait_idle();
    choose(&mut rig, can);
    let former = rig.session().conn;
    rig.prompt("five");
    rig.wait("another life", |state| state.sessions[&state.active].conn != former);
    rig.wait_ready();
    rig.ask("six");
    if can.forks {
        rig.act(Action::ForkSession);
        rig.wait("the copy", |state| state.sessions.len() == 2);
        rig.wait_ready();
        rig.ask("seven");
    }
    told(&rig)
}

/// Modes, models, options and the list, as far as there are any.
fn choose(rig: &mut Rig, can: Can) {
    let key = rig.state.active;
    let mut effects = Vec::new();
    if can.modes {
        rig.act(Action::NextMode);
        rig.wait("the mode", |state| {
            state.sessions[&state.active].modes.as_ref().is_some_and(|modes| modes.current.as_str() == "plan")
        });
    }
    if can.models {
        flow::set_model(&mut rig.state, key, "big".into(), Instant::now(), &mut effects);
        rig.run(std::mem::take(&mut effects));
        rig.wait("the model", |state| {
            state.sessions[&state.active].models.as_ref().is_some_and(|it| it.current.as_str() == "big")
        });
    }
    if can.options {
        let value = ConfigValue::Text("b".to_owned());
        flow::set_option(&mut rig.state, key, "route".to_owned(), value, Instant::now(), &mut effects);
        rig.run(std::mem::take(&mut effects));
        rig.wait("the option", |state| {
            format!("{:?}", state.sessions[&state.active].options).contains("\"b\", choices")
        });
    }
    if can.lists {
        rig.act(Action::OpenSessions);
        rig.wait("the list", |state| state.listed.len() == 1);
        rig.act(Action::Escape);
    }
}

/// All that the user sees, without the agent's own ids.
fn told(rig: &Rig) -> String {
    let mut told = String::new();
    for session in rig.state.sessions.values() {
        for line in digest(session).lines() {
            match line.strip_prefix("tool ").and_then(|rest| rest.split_once(" [")) {
                Some((_, rest)) => writeln!(told, "tool [{rest}").unwrap(),
                None => writeln!(told, "{line}").unwrap(),
            }
        }
        writeln!(told, "modes {:?}", session.modes).unwrap();
        writeln!(told, "models {:?}", session.models).unwrap();
        writeln!(told, "options {:?}", session.options).unwrap();
        let plans: Vec<_> = session.plans.iter().map(|plan| &plan.body).collect();
        writeln!(told, "plans {plans:?}").unwrap();
        writeln!(told, "commands {:?}", session.commands).unwrap();
        writeln!(told, "{:?} {:?} asks {}", session.phase, session.turn, session.asks.len()).unwrap();
    }
    writeln!(told, "listed {:?}", rig.state.listed).unwrap();
    told
}

fn check(tongue: &dyn Tongue) {
    let twin = play(&Official { can: tongue.can() });
    let own = play(tongue);
    assert!(twin.contains("After the crash."), "{twin}");
    assert_eq!(own, twin);
}

#[test]
fn openoxide_in_the_form_of_its_document() {
    check(&OpenOxide { form: OxideForm::Methods });
}

#[test]
fn openoxide_with_events_inside_of_updates() {
    check(&OpenOxide { form: OxideForm::Inside });
}

#[test]
fn openoxide_with_bare_events_and_a_receipt_before_them() {
    check(&OpenOxide { form: OxideForm::Bare });
}

#[test]
fn openoxide_found_out_by_itself() {
    check(&OpenOxide { form: OxideForm::Unknown });
}

#[test]
fn elephant_in_the_form_of_its_document() {
    check(&ElephantDocument);
}

#[test]
fn elephant_in_the_form_of_its_code_with_headers() {
    check(&ElephantCode);
}

#[test]
fn zeptoclaw_in_the_form_of_its_document() {
    check(&ZeptoClawDocument);
}

#[test]
fn zeptoclaw_in_the_form_of_its_code() {
    check(&ZeptoClawCode);
}

#[test]
fn activecontext_in_the_form_of_its_document() {
    check(&ActiveContextDocument);
}

#[test]
fn activecontext_in_the_form_of_its_code() {
    check(&ActiveContextCode { is_null: false });
}

#[test]
fn activecontext_whose_session_is_gone_after_a_cancel_gets_a_new_one_and_the_prompt() {
    let own = play(&ActiveContextCode { is_null: true });
    assert!(own.contains("The agent has forgotten this conversation."), "{own}");
    assert!(own.contains("Here again."), "{own}");
    assert_eq!(
        own.matches("user: four").count(),
        1,
        "the prompt is sent again without a second item:\n{own}"
    );
}

#[test]
fn banjo_in_the_form_of_its_document() {
    check(&BanjoDocument);
}

#[test]
fn banjo_in_the_form_of_its_code() {
    check(&BanjoCode);
}

#[test]
fn acp_v2_leaves_the_user_with_what_version_1_would() {
    check(&Second);
}

#[test]
fn the_twins_cover_every_way_to_reopen() {
    let ways: Vec<Reopen> =
        [OpenOxide { form: OxideForm::Methods }.can(), ElephantDocument.can(), ZeptoClawDocument.can()]
            .map(|can| can.reopens)
            .to_vec();
    assert_eq!(ways, [Reopen::Resumes, Reopen::Loads, Reopen::Not]);
}
