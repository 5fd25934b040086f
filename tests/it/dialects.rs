//! Five agents, each in the form of its documentation and of its code, over each of its transports, compared with an
//! official twin: the resulting state must be the same.
//!
//! Each form writes the script of an agent (`writers`). The user's actions are the same for all (`play`), as far as the
//! agent supports them: prompts with text, thoughts, tool calls, a plan and a diff; permissions that are allowed,
//! rejected and cancelled; a cancelled turn and a prompt after it; modes, models, options; a session list; a lost
//! connection and the recovery; a fork; the end. The results are written to `docs/compatibility.md` (`table`).

mod golden;
mod parts;
mod play;
mod table;
mod writers;

use self::parts::{Form, Part, played};
use self::play::Line;
use self::writers::{
    ActiveContextCode, Can, ElephantDocument, OpenOxide, OxideForm, Reopen, ScriptWriter, ZeptoClawDocument,
};
use super::bridge::Shape;

/// Plays a form and its twin, and compares the results.
fn check(form: Form, line: Line) {
    let twin = Form::Twin(form.system());
    let [own, twin, local] = std::thread::scope(|scope| {
        [(form, line), (twin, line), (twin, Line::Stdio)]
            .map(|(form, line)| scope.spawn(move || played(Part { form, line })))
            .map(|playing| playing.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault)))
    });
    assert!(twin.summary.contains("After the crash."), "{}", twin.summary);
    assert_eq!(own.summary, twin.summary);
    if !line.is_post() && !line.is_deaf() {
        assert_eq!(parts::without_cause(&own.summary), parts::without_cause(&local.summary));
    }
}

macro_rules! parts {
    ($($name:ident: $form:expr, $line:expr;)*) => {
        $(#[test] fn $name() { check($form, $line); })*

        /// All parts with the names of their tests.
        fn all_parts() -> Vec<(&'static str, Part)> {
            vec![$((stringify!($name), Part { form: $form, line: $line })),*]
        }
    };
}

parts! {
    openoxide_as_documented: Form::OpenOxide(OxideForm::Methods), Line::Stdio;
    openoxide_events_in_updates: Form::OpenOxide(OxideForm::Inside), Line::Stdio;
    openoxide_bare_events_after_a_receipt: Form::OpenOxide(OxideForm::Bare), Line::Stdio;
    openoxide_unnamed: Form::OpenOxide(OxideForm::Unknown), Line::Stdio;
    openoxide_over_post_and_stream: Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::PostSse);
    openoxide_over_post_and_stream_named_events:
        Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::NamedEvents);
    openoxide_over_post_and_stream_bare_events:
        Form::OpenOxide(OxideForm::Bare), Line::Behind(Shape::PostSse);
    openoxide_over_post_and_stream_events_in_updates:
        Form::OpenOxide(OxideForm::Inside), Line::Behind(Shape::PostSse);
    openoxide_over_post_and_stream_detected:
        Form::OpenOxide(OxideForm::Unknown), Line::Found(Shape::PostSse);
    openoxide_over_open_posts_and_stream_by_profile:
        Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::HeldPosts);
    openoxide_over_open_posts_and_stream_events_in_updates:
        Form::OpenOxide(OxideForm::Inside), Line::Found(Shape::HeldPosts);
    openoxide_over_open_posts_and_stream_detected:
        Form::OpenOxide(OxideForm::Unknown), Line::Found(Shape::HeldPosts);
    elephant_as_documented: Form::ElephantDocument, Line::Stdio;
    elephant_as_implemented_with_headers: Form::ElephantCode, Line::Stdio;
    elephant_over_rpc_and_stream: Form::ElephantDocument, Line::Behind(Shape::RpcSse);
    elephant_over_rpc_and_stream_as_implemented: Form::ElephantCode, Line::Behind(Shape::RpcSse);
    elephant_over_rpc_and_stream_detected: Form::ElephantCode, Line::Found(Shape::RpcSse);
    zeptoclaw_as_documented: Form::ZeptoClawDocument, Line::Stdio;
    zeptoclaw_as_implemented: Form::ZeptoClawCode, Line::Stdio;
    zeptoclaw_over_post: Form::ZeptoClawServedDocument, Line::Behind(Shape::Post);
    zeptoclaw_over_post_as_implemented: Form::ZeptoClawServedCode, Line::Behind(Shape::Post);
    zeptoclaw_over_post_detected: Form::ZeptoClawServedCode, Line::Found(Shape::Post);
    activecontext_as_documented: Form::ActiveContextDocument, Line::Stdio;
    activecontext_as_implemented: Form::ActiveContextCode, Line::Stdio;
    activecontext_over_websocket: Form::ActiveContextDocument, Line::Behind(Shape::Socket);
    activecontext_over_websocket_as_implemented: Form::ActiveContextCode, Line::Behind(Shape::Socket);
    activecontext_over_http: Form::ActiveContextDocument, Line::Behind(Shape::OneStream);
    activecontext_over_http_as_implemented: Form::ActiveContextCode, Line::Behind(Shape::OneStream);
    banjo_as_documented: Form::BanjoDocument, Line::Stdio;
    banjo_as_implemented: Form::BanjoCode, Line::Stdio;
    banjo_over_websocket: Form::BanjoDocument, Line::Behind(Shape::Socket);
    banjo_over_websocket_as_implemented: Form::BanjoCode, Line::Behind(Shape::Socket);
    banjo_over_websocket_not_read_during_a_turn: Form::BanjoCode, Line::Behind(Shape::DeafSocket);
    acp_v1_over_stdio: Form::Version1, Line::Stdio;
    acp_v1_over_websocket: Form::Version1, Line::Behind(Shape::Socket);
    acp_v1_over_http: Form::Version1, Line::Behind(Shape::OneStream);
    acp_v1_over_http_detected: Form::Version1, Line::Found(Shape::OneStream);
    acp_v2_over_stdio: Form::Version2, Line::Stdio;
    acp_v2_over_websocket: Form::Version2, Line::Behind(Shape::Socket);
    acp_v2_over_http: Form::Version2, Line::Behind(Shape::OneStream);
}

#[test]
fn activecontext_gets_a_new_session_and_the_prompt_after_a_cancel_ended_the_session() {
    let own = play::play(&ActiveContextCode { is_null: true }, Line::Stdio).summary;
    assert!(own.contains("The agent could not restore this conversation."), "{own}");
    assert!(own.contains("Here again."), "{own}");
    assert_eq!(
        own.matches("user: four").count(),
        1,
        "the prompt is sent again without a second item:\n{own}"
    );
}

#[test]
fn the_twins_cover_every_way_to_reopen() {
    let ways: Vec<Reopen> = [
        OpenOxide { form: OxideForm::Methods }.can(),
        ElephantDocument.can(),
        ZeptoClawDocument { is_served: false }.can(),
    ]
    .map(|can: Can| can.reopens)
    .to_vec();
    assert_eq!(ways, [Reopen::Resumes, Reopen::Loads, Reopen::Not]);
}
