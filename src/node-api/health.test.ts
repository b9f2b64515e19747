import assert from "node:assert/strict";
import { test } from "node:test";
import type { HealthzCheck } from "../server/healthz.ts";
import { healthz } from "./health.ts";

const well: HealthzCheck = { name: "pleg", ok: true, detail: "last listing 0.2 s ago" };
const stuck: HealthzCheck = { name: "runtime", ok: false, detail: "StopContainer c1 for 200.0 s" };
const away: HealthzCheck = { name: "apiserver", ok: false, detail: "lease renewed 60.0 s ago" };

function ask(path: string, checks: readonly HealthzCheck[], query = ""): string {
  const deps = { health: () => checks, surroundings: () => [away] };
  const { status, body } = healthz(deps, path.split("/").slice(1), new URLSearchParams(query));
  assert.ok(typeof body === "string");
  return `${status} ${body}`;
}

test("a node is healthy when its own loops are, whatever its dependencies", () => {
  assert.equal(ask("", [well]), "200 ok");
  assert.equal(
    ask("", [well], "verbose"),
    "200 [+]ping ok\n[+]log ok\n[+]pleg ok: last listing 0.2 s ago\n" +
      "[-]apiserver failed: lease renewed 60.0 s ago\nhealthz check passed\n",
  );
});

test("a stuck loop is reported with its oldest call, unless it is excluded", () => {
  assert.match(
    ask("", [well, stuck]),
    /^500 [^]*\[-\]runtime failed: StopContainer c1 for 200.0 s\n[^]*check failed\n$/,
  );
  assert.match(ask("/syncloop", [well, stuck]), /^500 /);
  assert.equal(ask("/ping", [stuck]), "200 ok");
  assert.equal(ask("", [well, stuck], "exclude=runtime"), "200 ok");
  assert.match(ask("", [well], "exclude=none&verbose"), /cannot be excluded: no matches for "none"/);
});

test("each check can be requested alone", () => {
  assert.equal(ask("/pleg", [well]), "200 ok");
  assert.equal(ask("/apiserver", [well]), "500 internal server error: lease renewed 60.0 s ago\n");
  assert.throws(() => ask("/none", [well]), /404/);
  assert.throws(() => ask("/pleg/more", [well]), /404/);
});
