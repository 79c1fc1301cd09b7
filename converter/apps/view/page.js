// Opens the viewers and hands them the trace: see handover.js, which comes before it.

const state = document.getElementById("state");

async function traceOf(path) {
  const response = await fetch(path);
  if (!response.ok) {
    throw new Error((await response.text()) || `The server answered ${response.status}.`);
  }
  return response.arrayBuffer();
}

async function hand(button) {
  state.textContent = "Loading...";
  const asks = document.getElementById(`${button.viewer}-asks`)?.checked;
  const viewer = { ...VIEWERS[button.viewer], url: asks ? button.asks : button.address };
  await handOver(viewer, traceOf(button.trace), button.name);
  state.textContent = "The viewer has the trace.";
}

for (const button of JSON.parse(document.getElementById("buttons").textContent)) {
  document.getElementById(button.viewer).addEventListener("click", () =>
    hand(button).catch((error) => {
      state.textContent = error.message;
    }),
  );
}
