//! Content blocks: what is read is written as it came.
#![no_main]

use codespar_protocol::ContentBlock;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(blocks) = serde_json::from_str::<Vec<ContentBlock>>(text) else {
        return;
    };
    let written = serde_json::to_string(&blocks).expect("blocks can be written");
    let again: Vec<ContentBlock> = serde_json::from_str(&written).expect("and read again");
    assert_eq!(
        written,
        serde_json::to_string(&again).expect("blocks can be written")
    );
});
