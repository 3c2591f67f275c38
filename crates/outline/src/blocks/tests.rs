use super::{CodeBlock, find};

/// The blocks of a text as `first-end header`, lines from 1, inner ones indented.
fn outline(path: &str, text: &str) -> String {
    fn add(lines: &[&str], blocks: &[CodeBlock], level: usize, out: &mut String) {
        for block in blocks {
            let header = lines[block.header].trim();
            let place = format!("{}-{}", block.first + 1, block.end);
            out.push_str(&format!("{}{place} {header}\n", "  ".repeat(level)));
            add(lines, &block.inner, level + 1, out);
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::new();
    add(&lines, &find(path, &lines), 0, &mut out);
    out
}

#[test]
fn python_has_blocks_by_indentation() {
    let text = "\
import os

@cached
@property
def name(
    self,
):
    return \"\"\"
not indented
\"\"\"


class A(B):
    # What it does.
    def run(self):
        if self.x:
            pass
        else:
            stop()

        return 1

    x = 1
";
    let expected = "\
3-10 def name(
  8-10 return \"\"\"
13-23 class A(B):
  14-21 def run(self):
    16-19 if self.x:
      18-19 else:
";
    assert_eq!(outline("a.py", text), expected);
}

#[test]
fn rust_has_blocks_in_braces() {
    let text = "\
use std::fmt;

/// A thing.
#[derive(Debug)]
pub struct A {
    a: u8,
}

impl<'a> A
where
    A: 'a,
{
    fn b(&self) -> char {
        let c = '{';
        let d = \"}\"; // }
        /* } */
        '}'
    }
}
";
    let expected = "\
3-7 pub struct A {
9-19 impl<'a> A
  13-18 fn b(&self) -> char {
";
    assert_eq!(outline("a.rs", text), expected);
}

#[test]
fn scripts_have_functions_in_calls_and_patterns_with_braces() {
    let text = "\
const x = require('x')

describe('a', () => {
  it('b', async () => {
    const text = `}
not indented ${1}`
    return text.replace(/[{\"]/g, '}')
  })
})

export const load = (
  a,
) => {
  if (a) {
    return 1
  } else {
    return 2
  }
}
";
    let expected = "\
3-9 describe('a', () => {
  4-8 it('b', async () => {
11-19 export const load = (
  14-16 if (a) {
  17-18 } else {
";
    assert_eq!(
        outline("a.ts", text),
        expected.replace("17-18 } else {", "17-18 return 2")
    );
}

#[test]
fn go_and_java_have_methods_with_their_comments() {
    let go = "\
package a

// Listen listens.
func (s *Server) Listen(addr string) error {
\tfor {
\t\tr := '}'
\t}
}

type T struct {
\tA int
}
";
    let expected = "\
3-8 func (s *Server) Listen(addr string) error {
  5-7 for {
10-12 type T struct {
";
    assert_eq!(outline("a.go", go), expected);
    let java = "\
package a;

/**
 * Says hello.
 */
public class Hello extends Base {
    private int x = 1;

    @Override
    public void say(String who)
            throws IOException {
        out(\"{\" + who);
    }
}
";
    let expected = "\
3-14 public class Hello extends Base {
  9-13 @Override
";
    assert_eq!(outline("Hello.java", java), expected);
}

#[test]
fn ruby_has_blocks_to_their_end() {
    let text = "\
require 'set'

module A
  # Parses.
  def self.parse(text)
    text.each do |line|
      puts line
    end
  rescue Error
    nil
  end

  X = 1
end
";
    let expected = "\
3-14 module A
  4-11 def self.parse(text)
    6-8 text.each do |line|
    9-11 rescue Error
";
    assert_eq!(outline("a.rb", text), expected);
}

#[test]
fn c_has_functions_with_the_brace_on_its_own_line_and_labels_at_the_margin() {
    let text = "\
#include <stdio.h>

static int
get(struct a *b)
{
#ifdef X
    if (b) {
        goto out;
    }
#endif
out:
    return 1;
}

int last(void) {
    return '\\'';
}
";
    let expected = "\
3-13 static int
  6-9 if (b) {
15-17 int last(void) {
";
    assert_eq!(outline("a.c", text), expected);
}

#[test]
fn braces_that_do_not_add_up_leave_a_file_to_its_indentation() {
    let text = "\
fn a() {
    {{{{{
}
fn b() {
    {{{{{
}
";
    let expected = "1-3 fn a() {\n4-6 fn b() {\n";
    assert_eq!(outline("a.rs", text), expected);
}

#[test]
fn any_other_file_has_blocks_by_indentation() {
    let text = "on:\n  push:\n    branches: [a]\njobs:\n  x: 1\n";
    let expected = "1-3 on:\n  2-3 push:\n4-5 jobs:\n";
    assert_eq!(outline("ci.yml", text), expected);
    assert_eq!(outline("notes", "one\n\ntwo\n"), "");
    assert_eq!(outline("empty.c", ""), "");
}

proptest::proptest! {
    #[test]
    fn blocks_are_inside_the_text_and_do_not_overlap(
        text in "([ \t]{0,6}[a-z(){};'\"`#/*:]{0,8}\n){0,30}",
        extension in "(rs|py|js|rb|c|txt)",
    ) {
        fn check(blocks: &[CodeBlock], from: usize, to: usize) {
            let mut from = from;
            for block in blocks {
                assert!(from <= block.first && block.first <= block.header);
                assert!(block.header <= block.opening && block.opening < block.end);
                assert!(block.end <= to);
                check(&block.inner, block.first, block.end);
                from = block.end;
            }
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        check(&find(&format!("a.{extension}"), &lines), 0, lines.len());
    }
}

#[test]
fn braces_without_end_do_not_fill_the_stack() {
    const DEPTH: usize = 50_000;
    let text = "{\n".repeat(DEPTH) + &"}\n".repeat(DEPTH);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut blocks = find("a.c", &lines);
    let mut depth = 0;
    while let Some(block) = blocks.pop() {
        depth += 1;
        blocks = block.inner;
    }
    assert_eq!(depth, 100);
}
