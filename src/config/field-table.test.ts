import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { fieldTable, type FieldSupport } from "./field-table.ts";
import { configurationFlags } from "./flag-table.ts";
import { valueAt } from "./json.ts";
import { nodeFlags } from "./node-flag-table.ts";
import { kubeletConfigurationSchema } from "./schema.ts";
import { unhonouredFields } from "./unhonoured.ts";

const documentation = new URL("../../docs/configuration.md", import.meta.url);

/** From types.go of 1.36. */
const upstreamFields = 125;

test("the schema has every field of the 1.36 kubelet", () => {
  assert.equal(Object.keys(kubeletConfigurationSchema.shape).length, upstreamFields);
});

test("the table has exactly the fields of the schema", () => {
  const inTable = new Set(Object.keys(fieldTable).map((path) => path.replace(/\..*$/u, "")));
  assert.deepEqual(inTable, new Set(Object.keys(kubeletConfigurationSchema.shape)));
});

test("every default fits the schema", () => {
  const result = kubeletConfigurationSchema.safeParse(withDefaults({}));
  assert.deepEqual(result.error?.issues ?? [], []);
});

test("an unsupported field is a warning with its place, unless it is set to podwright's behaviour", () => {
  const unhonoured = unhonouredFields([
    { place: "a", values: { cpuManagerPolicy: "static", enableServer: true, hairpinMode: "none" } },
    { place: "b", values: { cpuManagerPolicy: "none", enableServer: false, logging: { vmodule: [], format: "text" } } },
  ]);
  assert.deepEqual(
    unhonoured.map(({ place, field }) => `${place} ${field}`),
    ["a hairpinMode", "b logging.format"],
  );
});

function supportText(support: FieldSupport): string {
  switch (support.kind) {
    case "honoured":
      return support.how === undefined ? "honoured" : `honoured; ${support.how}`;
    case "ignored":
      return `ignored with a warning${exceptions(support.unless ?? [])}: podwright ${support.because}`;
  }
}

function exceptions(unless: readonly unknown[]): string {
  const shown = unless.map((value) => `\`${JSON.stringify(value)}\``);
  return shown.length === 0 ? "" : `, unless ${shown.join(" or ")}`;
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** The tables of docs/configuration.md. */
function tables(): Record<string, string> {
  const defaults = withDefaults({});
  const flagOf = new Map([...configurationFlags].map(([name, { field }]) => [field, name]));
  const fields = Object.entries(fieldTable).map(([field, support]) => {
    const value = valueAt(defaults, field);
    const flag = flagOf.get(field);
    const shown = value === undefined || typeof value === "object" ? "" : `\`${JSON.stringify(value)}\``;
    return row(`\`${field}\``, shown, flag === undefined ? "" : `\`--${flag}\``, supportText(support));
  });
  const flags = Object.entries(nodeFlags).map(([name, { support, text }]) => {
    const told = { honoured: "honoured", ignored: "ignored with a warning" }[support];
    return row(`\`--${name}\``, told, support === "honoured" ? text : `podwright ${text}`);
  });
  return {
    fields: ["| field | default | flag | this version |", "|---|---|---|---|", ...fields].join("\n"),
    flags: ["| flag | this version | |", "|---|---|---|", ...flags].join("\n"),
  };
}

test("docs/configuration.md shows the tables (PODWRIGHT_UPDATE=1 writes them into it)", () => {
  const text = readFileSync(documentation, "utf8");
  let wanted = text;
  for (const [name, table] of Object.entries(tables())) {
    const part = new RegExp(`(<!-- ${name} -->\n\n)[^]*?(\n\n<!-- end -->)`, "u");
    assert.match(text, part);
    wanted = wanted.replace(part, (_, start: string, end: string) => start + table + end);
  }
  if (process.env["PODWRIGHT_UPDATE"] === "1") writeFileSync(documentation, wanted);
  else assert.equal(text, wanted);
});
