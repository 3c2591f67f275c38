// Plays recordings to xterm.js without a window. In: [{columns, rows, events: [{write} |
// {resize: [columns, rows]}]}]. Out: for each, the screens after each resize and at the end.
const { Terminal } = require(process.argv[2]);

function screen(terminal) {
  const buffer = terminal.buffer.active;
  const rows = [];
  for (let y = 0; y < buffer.length; y++) {
    const line = buffer.getLine(y);
    const next = buffer.getLine(y + 1);
    const wrapped = next !== undefined && next.isWrapped;
    let text = line.translateToString(!wrapped, 0, terminal.cols);
    // A wide character that did not fit leaves a cell that is no blank.
    const last = line.getCell(terminal.cols - 1);
    if (wrapped && last.getCode() === 0 && last.getWidth() === 1) text = text.slice(0, -1);
    rows.push({ text, wrapped });
  }
  const cursor = [buffer.baseY + buffer.cursorY, buffer.cursorX];
  return { rows, history: buffer.baseY, cursor };
}

async function play({ columns, rows, events }) {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 100000, allowProposedApi: true });
  const screens = [];
  for (const event of events) {
    if (event.resize) {
      terminal.resize(...event.resize);
      screens.push(screen(terminal));
    } else {
      await new Promise((done) => terminal.write(event.write, done));
    }
  }
  screens.push(screen(terminal));
  return screens;
}

async function main() {
  process.stdin.setEncoding("utf8");
  let input = "";
  for await (const chunk of process.stdin) input += chunk;
  const results = [];
  for (const recording of JSON.parse(input)) results.push(await play(recording));
  process.stdout.write(JSON.stringify(results));
}

main();
