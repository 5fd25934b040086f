//! Allocations per text chunk: a limit of the wire, counted in a process of its own.

use dhat::HeapStats;
use parlor::acp::codec::Codec;
use parlor::model::AgentSpec;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const CHUNKS: u64 = 500;

fn allocations(params: impl Fn(u64) -> String) -> f64 {
    let messages: Vec<String> = (0..CHUNKS).map(params).collect();
    let mut codec = Codec::new(&AgentSpec::default());
    let mut out = Vec::new();
    let before = HeapStats::get().total_blocks;
    for message in &messages {
        assert!(codec.notification("session/update", Some(message), &mut out));
    }
    let blocks = HeapStats::get().total_blocks - before;
    assert!(!out.is_empty());
    #[expect(clippy::cast_precision_loss, reason = "some thousands at most")]
    let per_chunk = blocks as f64 / CHUNKS as f64;
    per_chunk
}

fn chunk(message: u64, text: &str) -> String {
    format!(
        r#"{{"sessionId":"d931ce22-bc2c","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m{message}","content":{{"type":"text","text":"{text}"}}}}}}"#
    )
}

// One test: the counters are of the whole process.
#[test]
fn a_chunk_costs_few_allocations_and_a_joined_one_hardly_any() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let apart = allocations(|at| chunk(at, "forty bytes of text, more or less, plain"));
    // The JSON reader unescapes into a buffer that grows by doubling.
    let escaped = allocations(|_| chunk(1, r#"a line\nand a \"quote\" that must be unescaped"#));
    let joined = allocations(|_| chunk(1, "forty bytes of text, more or less, plain"));
    println!("apart {apart}, escaped {escaped}, joined {joined}");
    assert!(apart <= 4.0, "{apart} allocations per chunk of its own message");
    assert!(escaped <= 6.0, "{escaped} allocations per chunk with escapes");
    assert!(joined <= 0.5, "{joined} allocations per joined chunk");
}
