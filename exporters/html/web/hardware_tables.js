// The tables of what the processor recorded: branches, and accesses to memory.

function branchTables({ branches }) {
  if (branches === null) {
    return [];
  }
  const figures = [
    amountColumn("Taken", (row) => row.taken, "count", branches.taken),
    ...(branches.mispredicted === null ? [] : mispredictions()),
    ...(branches.mean_cycles === null ? [] : [meanColumn("Cycles", (row) => row.mean_cycles)]),
  ];
  return [
    sortedTable({
      caption: `${plural(branches.taken, "branch", "branches")} taken, by edge`,
      columns: [
        ...figures,
        textColumn("From", (row) => codePlace(row.from)),
        textColumn("To", (row) => codePlace(row.to)),
      ],
      rows: branches.edges,
      filterLabel: "Filter branches",
    }),
    sortedTable({
      caption: "Branches by function",
      columns: [...figures, textColumn("Function", (row) => withTier(row.function, row.tier))],
      rows: branches.functions,
      sortBy: branches.mispredicted === null ? 0 : 1,
      filterLabel: "Filter functions of branches",
    }),
  ];
}

function mispredictions() {
  return [
    amountColumn("Mispredicted", (row) => row.mispredicted ?? 0, "count", 0),
    {
      title: "Share",
      value: (row) => row.mispredicted_share ?? -1,
      show: (row) => (row.mispredicted_share === null ? "" : formatShare(row.mispredicted_share, 1)),
      share: (row) => row.mispredicted_share ?? 0,
    },
  ];
}

function meanColumn(title, value) {
  return { title, value: (row) => value(row) ?? -1, show: (row) => (value(row) === null ? "" : value(row).toFixed(1)) };
}

function accessTables(accesses) {
  const figures = [
    amountColumn("Samples", (row) => row.samples, "count", accesses.samples),
    ...(accesses.latency === null
      ? []
      : [
          amountColumn("Cycles", (row) => row.latency, "count", accesses.latency),
          meanColumn("Each", (row) => row.mean_latency),
        ]),
  ];
  const level = textColumn("Level", (row) => row.level ?? "unknown");
  const sortBy = accesses.latency === null ? 0 : 1;
  return [
    sortedTable({
      caption: `Accesses to memory of ${accesses.event}, by level`,
      columns: [...figures, level],
      rows: accesses.levels,
      sortBy,
    }),
    sortedTable({
      caption: `Accesses to memory of ${accesses.event}, by function and level`,
      columns: [...figures, level, textColumn("Function", (row) => row.function)],
      rows: accesses.functions,
      sortBy,
      filterLabel: `Filter accesses of ${accesses.event}`,
    }),
  ];
}

/** A function with its line, or where no line is known with the place in its code. */
function codePlace(place) {
  const name = withTier(place.function, place.tier);
  if (place.line !== null) {
    return `${name} ${(place.file ?? "").split("/").at(-1)}:${place.line}`;
  }
  return place.offset ? `${name}+0x${place.offset.toString(16)}` : name;
}

function withTier(name, tier) {
  return tier === null ? (name ?? "unknown") : `${name ?? "unknown"} [${tier}]`;
}
