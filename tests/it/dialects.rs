//! Five systems, each in the form of its document and of its code, over each of its transports, against their
//! official twins: whatever the form and the line, the user must end up with the same state.
//!
//! Each form writes the script of an agent (`tongues`); the user does the same with all of them (`play`), as far
//! as the system can it: prompts with text, thoughts, tools, a plan and a diff; permissions allowed, rejected and
//! cancelled; a cancel in mid-turn and a prompt after it; modes, models, options; a list; the loss of the line and
//! what follows it; a copy; the end. What was seen to work makes `docs/compatibility.md` (`table`).

mod cast;
mod golden;
mod play;
mod table;
mod tongues;

use self::cast::{Form, Part, played};
use self::play::Line;
use self::tongues::{
    ActiveContextCode, Can, ElephantDocument, OpenOxide, OxideForm, Reopen, Tongue, ZeptoClawDocument,
};
use super::bridge::Shape;

/// Plays a part and its twin, and compares.
fn check(form: Form, line: Line) {
    let twin = Form::Twin(form.system());
    let [own, twin, at_home] = std::thread::scope(|scope| {
        [(form, line), (twin, line), (twin, Line::Stdio)]
            .map(|(form, line)| scope.spawn(move || played(Part { form, line })))
            .map(|playing| playing.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault)))
    });
    assert!(twin.told.contains("After the crash."), "{}", twin.told);
    assert_eq!(own.told, twin.told);
    if !line.is_post() && !line.is_deaf() {
        assert_eq!(cast::without_cause(&own.told), cast::without_cause(&at_home.told));
    }
}

macro_rules! parts {
    ($($name:ident: $form:expr, $line:expr;)*) => {
        $(#[test] fn $name() { check($form, $line); })*

        /// Every part with the name of its test.
        fn all_parts() -> Vec<(&'static str, Part)> {
            vec![$((stringify!($name), Part { form: $form, line: $line })),*]
        }
    };
}

parts! {
    openoxide_in_the_form_of_its_document: Form::OpenOxide(OxideForm::Methods), Line::Stdio;
    openoxide_with_events_inside_of_updates: Form::OpenOxide(OxideForm::Inside), Line::Stdio;
    openoxide_with_bare_events_and_a_receipt_before_them: Form::OpenOxide(OxideForm::Bare), Line::Stdio;
    openoxide_found_out_by_itself: Form::OpenOxide(OxideForm::Unknown), Line::Stdio;
    openoxide_by_post_and_stream: Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::PostSse);
    openoxide_by_post_and_stream_with_named_events:
        Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::NamedEvents);
    openoxide_by_post_and_stream_with_bare_events:
        Form::OpenOxide(OxideForm::Bare), Line::Behind(Shape::PostSse);
    openoxide_by_post_and_stream_with_events_inside_of_updates:
        Form::OpenOxide(OxideForm::Inside), Line::Behind(Shape::PostSse);
    openoxide_by_post_and_stream_found_out_by_itself:
        Form::OpenOxide(OxideForm::Unknown), Line::Found(Shape::PostSse);
    openoxide_by_open_posts_and_stream_known_by_its_profile:
        Form::OpenOxide(OxideForm::Methods), Line::Behind(Shape::HeldPosts);
    openoxide_by_open_posts_and_stream_with_events_inside_of_updates:
        Form::OpenOxide(OxideForm::Inside), Line::Found(Shape::HeldPosts);
    openoxide_by_open_posts_and_stream_found_out_by_itself:
        Form::OpenOxide(OxideForm::Unknown), Line::Found(Shape::HeldPosts);
    elephant_in_the_form_of_its_document: Form::ElephantDocument, Line::Stdio;
    elephant_in_the_form_of_its_code_with_headers: Form::ElephantCode, Line::Stdio;
    elephant_by_rpc_and_stream: Form::ElephantDocument, Line::Behind(Shape::RpcSse);
    elephant_by_rpc_and_stream_as_its_code_does_it: Form::ElephantCode, Line::Behind(Shape::RpcSse);
    elephant_by_rpc_and_stream_found_out_by_itself: Form::ElephantCode, Line::Found(Shape::RpcSse);
    zeptoclaw_in_the_form_of_its_document: Form::ZeptoClawDocument, Line::Stdio;
    zeptoclaw_in_the_form_of_its_code: Form::ZeptoClawCode, Line::Stdio;
    zeptoclaw_in_the_post: Form::ZeptoClawServedDocument, Line::Behind(Shape::Post);
    zeptoclaw_in_the_post_as_its_code_does_it: Form::ZeptoClawServedCode, Line::Behind(Shape::Post);
    zeptoclaw_in_the_post_found_out_by_itself: Form::ZeptoClawServedCode, Line::Found(Shape::Post);
    activecontext_in_the_form_of_its_document: Form::ActiveContextDocument, Line::Stdio;
    activecontext_in_the_form_of_its_code: Form::ActiveContextCode, Line::Stdio;
    activecontext_by_web_socket: Form::ActiveContextDocument, Line::Behind(Shape::Socket);
    activecontext_by_web_socket_as_its_code_does_it: Form::ActiveContextCode, Line::Behind(Shape::Socket);
    activecontext_by_http: Form::ActiveContextDocument, Line::Behind(Shape::OneStream);
    activecontext_by_http_as_its_code_does_it: Form::ActiveContextCode, Line::Behind(Shape::OneStream);
    banjo_in_the_form_of_its_document: Form::BanjoDocument, Line::Stdio;
    banjo_in_the_form_of_its_code: Form::BanjoCode, Line::Stdio;
    banjo_by_web_socket: Form::BanjoDocument, Line::Behind(Shape::Socket);
    banjo_by_web_socket_as_its_code_does_it: Form::BanjoCode, Line::Behind(Shape::Socket);
    banjo_by_web_socket_deaf_in_a_turn: Form::BanjoCode, Line::Behind(Shape::DeafSocket);
    acp_v1_as_it_is_written: Form::First, Line::Stdio;
    acp_v1_by_web_socket: Form::First, Line::Behind(Shape::Socket);
    acp_v1_by_http_with_one_stream: Form::First, Line::Behind(Shape::OneStream);
    acp_v1_by_http_found_out_by_itself: Form::First, Line::Found(Shape::OneStream);
    acp_v2_leaves_the_user_with_what_version_1_would: Form::Second, Line::Stdio;
    acp_v2_by_web_socket: Form::Second, Line::Behind(Shape::Socket);
    acp_v2_by_http_with_one_stream: Form::Second, Line::Behind(Shape::OneStream);
}

#[test]
fn activecontext_whose_session_is_gone_after_a_cancel_gets_a_new_one_and_the_prompt() {
    let own = play::play(&ActiveContextCode { is_null: true }, Line::Stdio).told;
    assert!(own.contains("The agent has forgotten this conversation."), "{own}");
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
