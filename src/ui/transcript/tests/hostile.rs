//! For any text in any item: no cell contains characters that affect a terminal, and nothing exceeds the
//! area.

use proptest::prelude::*;
use ratatui::buffer::CellWidth;

use super::*;

/// Input that agents should not send, or whose width is error-prone.
const PIECES: [&str; 32] = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1b_Ga=d\x1b\\",
    "\u{9b}31m",
    "\x07",
    "\x08",
    "\x7f",
    "\r",
    "\0",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{10eeee}",
    "e\u{301}",
    "日本語",
    "👩‍👩‍👧",
    "🧑🏽‍🚀",
    "1\u{fe0f}\u{20e3}",
    "\t",
    "\n",
    "word ",
    "a_b*c",
    "`",
    "|",
    "$",
    "\\(",
    "#",
    "- ",
    "https://e.org/x ",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

/// One item of each kind, with the text in every field.
fn items(text: &str) -> Vec<ItemBody> {
    let raw = || Raw(text.into());
    let own = || text.to_owned();
    let blocks = [
        ContentBlock::Text(own().into()),
        ContentBlock::Image { data: text.into(), mime_type: own(), uri: Some(own()) },
        ContentBlock::Audio { data: text.into(), mime_type: own() },
        ContentBlock::ResourceLink(ResourceLink {
            uri: own(),
            name: own(),
            title: Some(own()),
            description: Some(own()),
            mime_type: Some(own()),
            size_bytes: Some(9),
        }),
        ContentBlock::Resource { uri: own(), mime_type: Some(own()), body: ResourceBody::Text(own().into()) },
        ContentBlock::Resource { uri: own(), mime_type: None, body: ResourceBody::Blob(text.into()) },
        ContentBlock::Unknown(raw()),
    ];
    let mut out: Vec<ItemBody> = Vec::new();
    for role in [Role::User, Role::Agent, Role::Thought, Role::SubagentMessage] {
        let ItemBody::Message(mut said) = message(role, text) else { unreachable!() };
        said.parts.extend(blocks.iter().cloned().map(MessagePart::Block));
        out.push(ItemBody::Message(said));
        out.push(open_message(role, text));
    }
    for kind in [
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Execute,
        ToolKind::Search,
        ToolKind::Fetch,
        ToolKind::Other,
    ] {
        for status in [ToolStatus::InProgress, ToolStatus::Completed, ToolStatus::Failed] {
            let mut call = tool(kind, status, text);
            call.name = Some(own());
            call.input.command = Some(own());
            call.input.description = Some(own());
            call.input.url = Some(own());
            call.input.query = Some(own());
            call.input.path = Some(text.into());
            call.locations = vec![Location { path: text.into(), line: Some(3) }];
            call.output_text = Some(own().into());
            call.raw_input = Some(raw());
            call.raw_output = Some(raw());
            call.content = blocks.iter().cloned().map(ToolContent::Block).collect();
            call.content.push(ToolContent::Unknown(raw()));
            call.content.push(ToolContent::Terminal("t".into()));
            for old in [None, Some("other".into())] {
                let change = DiffChange::Texts { old, new: text.into() };
                call.content.push(ToolContent::Diff(FileDiff { path: text.into(), change }));
            }
            let change = DiffChange::Patch(format!("@@ -1 +1 @@\n-{text}\n+x{text}\n").into());
            call.content.push(ToolContent::Diff(FileDiff { path: text.into(), change }));
            out.push(ItemBody::Tool(Box::new(call)));
        }
    }
    for end in [
        TurnEnd::Failed { error: own(), fault: FaultKind::Agent },
        TurnEnd::AgentDied { cause: own(), stderr_tail: vec![own(), own()] },
        TurnEnd::Stopped { reason: StopReason::Other(own()), usage: None, took: Duration::from_secs(1) },
    ] {
        out.push(ItemBody::TurnEnd(end));
    }
    out.push(ItemBody::notice(Severity::Error, own(), Some(own())));
    for status in ["in_progress", "failed", text] {
        let (status, error) = (status.to_owned(), Some(own()));
        out.push(ItemBody::Compaction { id: own(), status, summary: own(), error });
    }
    out.push(ItemBody::Subagent {
        session: text.into(),
        key: None,
        title: own(),
        description: Some(own()),
        state: Some(own()),
        calls: usize::MAX,
    });
    out.push(ItemBody::Answered { question: own(), answer: own(), by: crate::model::Decider::User });
    out.push(ItemBody::Raw { name: own(), raw: raw() });
    out
}

/// Checks that no cell contains characters that affect a terminal, or text that does not fit.
fn check(buf: &Buffer) -> Result<(), TestCaseError> {
    let width = usize::from(buf.area.width);
    for (index, cell) in buf.content.iter().enumerate() {
        let symbol = cell.symbol();
        let is_bad = |ch: char| {
            ch.is_control() || matches!(ch, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{10eeee}')
        };
        prop_assert!(!symbol.chars().any(is_bad), "{:?} at {}, {}", symbol, index % width, index / width);
        let cols = usize::from(cell.cell_width()).max(1);
        // The last column is the scroll bar, and the one before it remains free.
        prop_assert!(index % width + cols <= width, "{:?} exceeds the area", symbol);
        if cols > 1 {
            prop_assert!(index % width + cols < width, "{:?} reaches the scroll bar", symbol);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_item_affects_the_terminal(text in text(), cols in 12_u16..130, is_open in any::<Option<bool>>()) {
        let mut session = session();
        session.terminals.insert("t".into(), TerminalView {
            command: Some(text.clone()),
            cwd: Some(text.clone().into()),
            output: text.clone().into_bytes().into(),
            ..TerminalView::new(true, start())
        });
        for body in items(&text) {
            let id = push(&mut session, body);
            session.view.set_open(id, is_open);
        }
        let mut view = TranscriptView::default();
        let mut rows = 0;
        loop {
            check(&render(&session, &mut view, cols, 90))?;
            rows += 90;
            if view.last_top == RowPosition::default() || rows > 9000 {
                break;
            }
            view.scroll_pages(-1);
        }
    }
}
