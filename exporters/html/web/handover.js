// Hands a profile or a trace to a viewer in a new window, by postMessage: nothing is uploaded.
//
// Each viewer is asked, again and again, until it answers; only then, and only to its own origin, the bytes go.
// Firefox Profiler: src/actions/receive-profile.ts. Perfetto: ui/src/frontend/post_message_handler.ts.

const VIEWERS = {
  firefox: {
    title: "Firefox Profiler",
    url: "https://profiler.firefox.com/from-post-message/",
    question: { name: "ready:request" },
    isAnswer: (data) => data !== null && typeof data === "object" && data.name === "ready:response",
    gift: (buffer) => ({ name: "inject-profile", profile: buffer }),
  },
  perfetto: {
    title: "Perfetto",
    url: "https://ui.perfetto.dev/",
    question: "PING",
    isAnswer: (data) => data === "PONG",
    gift: (buffer, title) => ({ perfetto: { buffer, title, fileName: title, localOnly: true } }),
  },
};
const ASK_EVERY_MS = 50;
const WARN_AFTER_MS = 4000;
const GIVE_UP_AFTER_MS = 120000;

/**
 * Opens the viewer and gives it what `bytes` promises. To be called by a click: browsers block other windows.
 *
 * viewer: a member of VIEWERS; bytes: a promise of an ArrayBuffer, gzipped or not; title: of the recording; say: called
 * with a text to show meanwhile, where the viewer does not answer soon. Resolves when the bytes are sent; rejects with an Error whose message can be shown.
 */
async function handOver(viewer, bytes, title, say = () => {}) {
  const isOnline = navigator.onLine; // a window that opens can change what the browser says
  const opened = window.open(viewer.url, "_blank");
  if (opened === null) {
    throw new Error(`The browser did not let ${viewer.title} open: allow windows of this page, and click again.`);
  }
  const [buffer] = await Promise.all([bytes, answerOf(viewer, opened, isOnline, say)]);
  opened.postMessage(viewer.gift(buffer, title), new URL(viewer.url).origin);
}

/** Resolves when the viewer in that window has said that it listens. */
function answerOf(viewer, opened, isOnline, say) {
  const origin = new URL(viewer.url).origin;
  return new Promise((resolve, reject) => {
    const began = Date.now();
    const warning = setTimeout(() => say(noAnswer(viewer, isOnline)), isOnline ? WARN_AFTER_MS : 0);
    const asking = setInterval(() => {
      if (opened.closed) {
        stop(reject, new Error(`The window of ${viewer.title} was closed.`));
      } else if (Date.now() - began > GIVE_UP_AFTER_MS) {
        stop(reject, new Error(`${viewer.title} did not answer. Nothing was sent.`));
      } else {
        opened.postMessage(viewer.question, "*");
      }
    }, ASK_EVERY_MS);
    const listen = (event) => {
      if (event.source === opened && event.origin === origin && viewer.isAnswer(event.data)) {
        stop(resolve);
      }
    };
    const stop = (settle, reason) => {
      clearInterval(asking);
      clearTimeout(warning);
      window.removeEventListener("message", listen);
      settle(reason);
    };
    window.addEventListener("message", listen);
  });
}

function noAnswer({ title }, isOnline) {
  const why = isOnline ? "" : "There is no network. ";
  return `${why}${title} does not answer: its site cannot be reached from here, or is slow. Save keeps the file for later.`;
}
