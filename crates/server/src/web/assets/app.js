// The only script: sends forms to the API, follows events, replaces the parts of a view that changed.
// There are no templates here: HTML comes from the server, from the address of the view.

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const say = (text) => { $("#announce") && ($("#announce").textContent = text); };

// --- Fetching and replacing -------------------------------------------------------------------

async function fetchDocument(address) {
  const response = await fetch(address, { credentials: "same-origin", headers: { accept: "text/html" } });
  if (response.redirected && new URL(response.url).pathname === "/login") {
    location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
    throw new Error("signed out");
  }
  if (!response.ok) throw new Error(String(response.status));
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Whether somebody is typing or choosing in there. */
function isInUse(element) {
  const active = document.activeElement;
  if (active && element.contains(active) && active.matches("input, textarea, select")) return true;
  return all("textarea, input:not([type=hidden])", element).some((field) =>
    field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
}

/** Parts whose end is what people look at. */
const SCROLLED = "[id].output, [id].scrolled";

/** Puts a new version of an element in place of the old one; what was opened stays open. */
function replace(old, fresh) {
  if (old.isEqualNode(fresh) || isInUse(old)) return;
  const focused = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
  for (const details of all("details[id]", old)) {
    const same = fresh.querySelector("#" + CSS.escape(details.id));
    if (same) same.open = details.open;
  }
  const scrolled = new Map(all(SCROLLED, old).map((one) => [one.id, one.scrollTop + one.clientHeight >= one.scrollHeight - 8 ? -1 : one.scrollTop]));
  const adopted = document.adoptNode(fresh);
  old.replaceWith(adopted);
  for (const one of all(SCROLLED, adopted)) {
    const at = scrolled.get(one.id) ?? -1;
    one.scrollTop = at < 0 ? one.scrollHeight : at;
  }
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

let wanted = new Set();
let timer = 0;
let running = false;

/** Fetches the view soon and replaces its parts that follow these kinds of events. */
function refresh(...kinds) {
  kinds.forEach((kind) => wanted.add(kind));
  if (!timer && !running) timer = setTimeout(refreshNow, 250);
}

async function refreshNow() {
  timer = 0;
  const kinds = wanted;
  wanted = new Set();
  const follows = (part) => kinds.has("*") || part.dataset.live.split(" ").some((kind) => kinds.has(kind));
  const parts = all("[data-live]").filter(follows);
  if (!parts.length) return;
  running = true;
  try {
    const fresh = await fetchDocument(location.href);
    for (const part of parts) {
      const version = part.id && fresh.getElementById(part.id);
      if (version && part.isConnected) replace(part, version);
    }
    const title = fresh.title;
    if (title) document.title = title;
    updateTimes();
  } catch { /* The next event, or the next connection, tries again. */ }
  running = false;
  if (wanted.size) refresh();
}

// --- Transcript: a window of chunks -----------------------------------------------------------

const MOST_CHUNKS = 8;
const transcript = () => $("#transcript");
const chunks = () => all("#transcript > .chunk");
const indexOf = (chunk) => Number(chunk.dataset.index);

async function fetchChunk(index) {
  const fresh = await fetchDocument(`${transcript().dataset.chunks}/${index}`);
  return { chunk: fresh.querySelector(".chunk"), last: Number(fresh.querySelector("[data-last]")?.dataset.last ?? -1) };
}

let loading = false;
async function extend(direction) {
  const list = chunks();
  if (loading || !list.length) return;
  const index = direction < 0 ? indexOf(list[0]) - 1 : indexOf(list.at(-1)) + 1;
  const last = Number(transcript().dataset.last);
  if (index < 0 || index > last) return;
  loading = true;
  try {
    const { chunk, last } = await fetchChunk(index);
    if (last >= 0) transcript().dataset.last = last;
    if (chunk) {
      const adopted = document.adoptNode(chunk);
      const anchor = direction < 0 ? list[0] : list.at(-1);
      const before = anchor.getBoundingClientRect().top;
      direction < 0 ? list[0].before(adopted) : list.at(-1).after(adopted);
      if (chunks().length > MOST_CHUNKS) (direction < 0 ? chunks().at(-1) : chunks()[0]).remove();
      if (anchor.isConnected) window.scrollBy(0, anchor.getBoundingClientRect().top - before);
    }
  } catch { /* Scrolling again tries again. */ }
  loading = false;
  showEnds();
}

/** The links to older and newer entries, where there are any. */
function showEnds() {
  const list = chunks();
  if (!list.length) return;
  const [older, newer] = [$("#older"), $("#newer")];
  if (older) older.hidden = indexOf(list[0]) === 0;
  if (newer) newer.hidden = indexOf(list.at(-1)) >= Number(transcript().dataset.last);
}

let chunkTimer = 0;
function refreshTranscript() {
  if (!chunkTimer) chunkTimer = setTimeout(refreshLastChunk, 300);
}

async function refreshLastChunk() {
  chunkTimer = 0;
  const list = chunks();
  if (!transcript()) return;
  const isAtEnd = !list.length || indexOf(list.at(-1)) >= Number(transcript().dataset.last);
  const follows = window.innerHeight + window.scrollY >= document.body.scrollHeight - 120;
  try {
    const index = list.length ? indexOf(list.at(-1)) : 0;
    const { chunk, last } = await fetchChunk(index);
    if (last >= 0) transcript().dataset.last = last;
    if (chunk && list.length) replace(list.at(-1), chunk);
    else if (chunk) transcript().append(document.adoptNode(chunk));
    if (isAtEnd && follows && last > index) await extend(1);
    $("#live") && ($("#live").textContent = "");
    if (follows && isAtEnd) window.scrollTo({ top: document.body.scrollHeight });
  } catch { /* The next entry tries again. */ }
  updateTimes();
  showEnds();
}

const visible = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

function showAgent(data) {
  const event = data.event ?? {};
  const here = transcript()?.dataset.session;
  if (event.type === "step" || event.type === "command_output") refresh("output");
  if (!here || data.session_id !== here) return;
  const live = $("#live");
  if (!live) return;
  if (event.type === "text_delta") live.textContent = (live.textContent + visible(event.text ?? "")).slice(-20000);
  if (event.type === "turn_started") live.textContent = "";
}

// --- Events -----------------------------------------------------------------------------------

const SILENCE = 45_000;
let source = null;
let heard = Date.now();
let cursor = null;
let attempts = 0;
let again = 0;

function connect() {
  clearTimeout(again);
  again = 0;
  source?.close();
  source = new EventSource("/api/v1/events" + (cursor === null ? "" : `?after=${cursor}`));
  const on = (name, act) => source.addEventListener(name, (event) => {
    heard = Date.now();
    if (event.lastEventId) cursor = event.lastEventId;
    let data = {};
    try { data = JSON.parse(event.data); } catch { /* An event without data. */ }
    act(data);
  });
  on("ready", (data) => {
    const isBack = attempts > 0 || document.documentElement.dataset.stream === "lost";
    attempts = 0;
    document.documentElement.dataset.stream = "open";
    $("#connection") && ($("#connection").textContent = "");
    if (cursor === null && data.cursor !== undefined) cursor = String(data.cursor);
    if (isBack) resync();
  });
  on("task", () => refresh("task"));
  on("question", (data) => { refresh("question", "task"); notify(data.question); });
  on("entry", (data) => {
    if (data.session_id === transcript()?.dataset.session) { refreshTranscript(); refresh("entry"); }
  });
  on("message", () => refresh("message"));
  on("agent", showAgent);
  on("resync", (data) => { cursor = data.cursor === undefined ? null : String(data.cursor); resync(); });
  on("restart", () => lost());
  source.onerror = lost;
}

/** Connects again after a while: longer each time, and not all browsers at once. */
function lost() {
  source?.close();
  document.documentElement.dataset.stream = "lost";
  $("#connection") && ($("#connection").textContent = "Reconnecting…");
  if (again) return;
  attempts += 1;
  const wait = Math.min(15_000, 500 * 2 ** Math.min(attempts, 5)) * (0.5 + Math.random());
  again = setTimeout(async () => {
    again = 0;
    try {
      const response = await fetch("/api/v1/me", { credentials: "same-origin" });
      if (response.status === 401) return void location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
      if (!response.ok) return lost();
      connect();
    } catch { lost(); }
  }, wait);
}

function resync() {
  refresh("*");
  if (transcript()) refreshTranscript();
}

/** The server gives a sign of life every 15 seconds, which scripts are not told of: a stream that
 *  is open for the browser may be dead all the same after sleep. */
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible" || !source) return;
  if (source.readyState === EventSource.CLOSED || Date.now() - heard > SILENCE) connect();
  resync();
});
setInterval(() => {
  if (document.visibilityState === "visible" && source && Date.now() - heard > SILENCE * 4) { heard = Date.now(); connect(); resync(); }
}, 15_000);
window.addEventListener("pagehide", () => source?.close());
window.addEventListener("pageshow", (event) => { if (event.persisted && source) { connect(); resync(); } });

// --- Notifications, on request ----------------------------------------------------------------

const canNotify = () => "Notification" in window && window.isSecureContext;

/** A question that waits, for somebody who asked to be told and does not look. */
function notify(question) {
  if (!canNotify() || Notification.permission !== "granted" || question?.status !== "open") return;
  if (document.visibilityState === "visible") return;
  const shown = new Notification("CodeSpar waits for an answer", { body: visible(question.summary ?? ""), tag: question.id });
  shown.onclick = () => { window.focus(); location.assign("/"); };
}

function showNotifyButton() {
  const button = $("[data-notify]");
  if (button) button.hidden = !canNotify() || Notification.permission !== "default";
}

// --- Forms ------------------------------------------------------------------------------------

/** A chosen or pasted file as it is sent. */
async function sent(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { name: file.name.slice(0, 60) || "picture", data: btoa(text) };
}

/** The fields of a form, sent with a button, as the body of a request. */
async function bodyOf(form, button) {
  // Names come from elsewhere: an object without a prototype takes any of them.
  const body = Object.create(null);
  for (const field of form.elements) {
    if (!field.name || field.disabled || field.tagName === "BUTTON") continue;
    if (field.type === "file") { if (field.files.length) body[field.name] = await Promise.all([...field.files].map(sent)); continue; }
    if (field.type === "checkbox") { if (field.checked) body[field.name] = true; continue; }
    if (field.value.trim() !== "") body[field.name] = field.value;
  }
  switch (form.dataset.answer) {
    case "permission": // A reason goes with the answer no.
      return { answer: button.value === "no" && body.reason ? `no, ${body.reason}` : button.value };
    case "fields": { // They are one answer.
      if (button?.name) return { answer: button.value };
      const given = Object.entries(body).map(([name, value]) => `${name}=${value}`);
      return { answer: given.join(" ") || "yes" };
    }
    default:
      return body;
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.api) return;
  event.preventDefault();
  const button = event.submitter;
  if (button?.dataset.confirm && !confirm(button.dataset.confirm)) return;
  const problem = $(".problem", form);
  if (problem) problem.textContent = "";
  const buttons = all("button", form);
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const response = await fetch(form.dataset.api, {
      method: "POST",
      credentials: "same-origin",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(await bodyOf(form, button)),
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) {
      const error = answer.error ?? {};
      throw new Error([error.message ?? `The server answered ${response.status}.`, ...(error.reasons ?? []).map((one) => `• ${one}`)].join("\n"));
    }
    form.reset();
    say(form.dataset.done ?? "Done");
    // What had the focus is about to go, except for a box that is written in again.
    (form.dataset.stay === undefined ? $("#main") : $("input[type=text]", form))?.focus({ preventScroll: true });
    const task = answer.task_id ?? answer.message?.task_id;
    const replies = $("[data-replies]", form);
    if (replies) replies.textContent = (answer.replies ?? []).map((one) => visible(one.text)).join("\n");
    if (form.dataset.then && task) location.assign(form.dataset.then.replace("{task_id}", encodeURIComponent(task)));
    else refresh("*");
  } catch (error) {
    if (problem) problem.textContent = error.message;
    say(error.message);
  }
  buttons.forEach((one) => { one.disabled = false; });
});

/** Names the chosen files beside their field. */
function showFiles(field) {
  const place = $(`[data-files="${CSS.escape(field.id)}"]`);
  if (place) place.textContent = [...field.files].map((file) => visible(file.name)).join(", ");
}
document.addEventListener("change", (event) => { if (event.target.type === "file") showFiles(event.target); });
document.addEventListener("reset", (event) => {
  setTimeout(() => all("input[type=file]", event.target).forEach(showFiles));
});

/** A pasted picture goes with the message that is being written. */
document.addEventListener("paste", (event) => {
  const field = event.target.form && $("input[type=file]", event.target.form);
  const files = [...(event.clipboardData?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  if (!field || !files.length) return;
  event.preventDefault();
  const chosen = new DataTransfer();
  [...field.files, ...files].forEach((file) => chosen.items.add(file));
  field.files = chosen.files;
  showFiles(field);
});

/** Stops all selected tasks, one after the other; those that cannot be stopped are named. */
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.bulk === undefined) return;
  event.preventDefault();
  if (!confirm(event.submitter?.dataset.confirm ?? "")) return;
  const problems = [];
  for (const box of all("[data-select]:checked")) {
    try {
      const response = await fetch(`/api/v1/tasks/${encodeURIComponent(box.dataset.select)}/stop`, {
        method: "POST", credentials: "same-origin", headers: { "content-type": "application/json" }, body: "{}",
      });
      const answer = await response.json().catch(() => ({}));
      if (!response.ok) problems.push(`${box.dataset.select}: ${answer.error?.message ?? response.status}`);
    } catch { problems.push(`${box.dataset.select}: the server does not answer`); }
    box.checked = false;
  }
  $(".problem", form).textContent = problems.join("\n");
  say(problems.length ? problems.join("\n") : "Stopped");
  showSelection();
  refresh("*");
});

function showSelection() {
  const bulk = $("#bulk");
  if (bulk) bulk.hidden = !$("[data-select]:checked") && !$(".problem", bulk).textContent;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select]")) showSelection();
  if (event.target.form?.dataset.auto !== undefined) event.target.form.requestSubmit();
});

// --- Keys, theme, times -----------------------------------------------------------------------

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* It holds for this page. */ }
}

function step(by) {
  const items = all("[data-item]");
  if (!items.length) return;
  const at = items.findIndex((item) => item.contains(document.activeElement));
  const next = items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + by))];
  ($("a", next) ?? next).focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) switchTheme();
  if (event.target.closest("[data-notify]")) Notification.requestPermission().then(showNotifyButton);
  if (event.target.closest("[data-show-keys]")) $("#keys").showModal();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Escape" && field) return void field.blur();
  if (field || $("dialog[open]")) return;
  const link = $(`[data-key="${CSS.escape(event.key)}"]`);
  if (link) { event.preventDefault(); link.click(); }
  else if (event.key === "?") $("#keys")?.showModal();
  else if (event.key === "t") switchTheme();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "x") $("[data-select]", document.activeElement?.closest("[data-item]") ?? document.createElement("i"))?.click();
  else if (event.key === "/") { const box = $("#search"); event.preventDefault(); box ? box.focus() : location.assign("/search"); }
  else if (event.key === "n") {
    const box = $("#instruction");
    event.preventDefault();
    box ? box.focus() : location.assign("/board#instruction");
  }
});

function updateTimes() {
  for (const one of all("time[data-ago]")) {
    const s = Math.floor((Date.now() - Date.parse(one.dateTime)) / 1000);
    const text = s < 5 ? "now" : s < 60 ? `${s} s ago` : s < 3600 ? `${Math.floor(s / 60)} min ago`
      : s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
    if (one.textContent !== text) one.textContent = text;
  }
}
setInterval(updateTimes, 20_000);

// --- Beginning --------------------------------------------------------------------------------

if ($("#keys")) {
  connect();
  showNotifyButton();
  // Where the navigation is wider than the screen.
  $("nav a[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  for (const one of all(SCROLLED)) one.scrollTop = one.scrollHeight;
  if (location.hash === "#instruction") $("#instruction")?.focus();
  if (transcript()) {
    const observer = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) extend(one.target.id === "older" ? -1 : 1);
    }, { rootMargin: "600px" });
    for (const id of ["older", "newer"]) {
      const link = document.getElementById(id);
      if (!link) continue;
      observer.observe(link);
      link.addEventListener("click", (event) => { event.preventDefault(); extend(id === "older" ? -1 : 1); });
    }
    document.addEventListener("scroll", () => {
      const list = chunks();
      if (!list.length || loading) return;
      if (list[0].getBoundingClientRect().top > -800) extend(-1);
      else if (list.at(-1).getBoundingClientRect().bottom < window.innerHeight + 800) extend(1);
    }, { passive: true });
    showEnds();
  }
}
