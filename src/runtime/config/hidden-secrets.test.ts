import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { podWith } from "../../../test/support/pods.ts";
import { hideSecrets } from "./hidden-secrets.ts";

const secrets = {
  login: { user: "ab", kind: "secret", password: "swordfish", longer: "swordfish-2" },
  certificate: { "tls.key": "-----BEGIN-----\nMIIEvQIBADANBg\nkqhkiG9w0\n-----END-----\n" },
  other: { word: "harmless" },
};
const encoder = new TextEncoder();
const objects = {
  secret: (namespace: string, name: string) => {
    const data = namespace === "ns" ? Object.entries(secrets).find(([known]) => known === name)?.[1] : undefined;
    if (data === undefined) return undefined;
    const bytes = Object.entries(data).map(([key, value]) => [key, encoder.encode(value)] as const);
    return { uid: "", type: "Opaque", data: new Map(bytes) };
  },
};

const pod = podWith({
  containers: [
    {
      name: "c",
      image: "busybox",
      env: [{ name: "P", valueFrom: { secretKeyRef: { name: "login", key: "password" } } }],
    },
  ],
  volumes: [
    { name: "tls", projected: { sources: [{ secret: { name: "certificate" } }, { secret: { name: "gone" } }] } },
  ],
});

test("values of the pod's secrets are named, not shown, the longest first", () => {
  const hide = hideSecrets(objects, pod);
  assert.equal(hide("it says swordfish!"), "it says <secret login/password>!");
  assert.equal(hide("swordfish-2 swordfish"), "<secret login/longer> <secret login/password>");
});

test("a value within a name is replaced only in the text", () => {
  assert.equal(hideSecrets(objects, pod)("swordfish is secret"), "<secret login/password> is <secret login/kind>");
});

test("lines of a secret are found one by one", () => {
  assert.equal(
    hideSecrets(objects, pod)("key: MIIEvQIBADANBg\r\n  kqhkiG9w0"),
    "key: <secret certificate/tls.key>\r\n  <secret certificate/tls.key>",
  );
});

test("short values, and unknown secrets, are kept", () => {
  assert.equal(hideSecrets(objects, pod)("ab is harmless $&"), "ab is harmless $&");
  const elsewhere = podWith(pod.spec, { namespace: "elsewhere" });
  assert.equal(hideSecrets(objects, elsewhere)("swordfish"), "swordfish");
});

test("tokens are found without knowing them, also for an unknown pod", () => {
  const token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl";
  assert.equal(hideSecrets(objects, undefined)(`Bearer ${token}, swordfish`), "Bearer <token>, swordfish");
});

test("a text is withheld if some of the pod's secrets are unknown, and nothing fails", () => {
  const unknown = {
    secret: (): undefined => {
      throw new Error('secret "login" is not known yet');
    },
  };
  assert.equal(hideSecrets(unknown, pod)("swordfish"), "<hidden while a Secret of the pod cannot be read>");
});

/** Hides the values of one Secret, which a volume of the pod has. */
function hideValues(...values: readonly string[]): (text: string) => string {
  const data = new Map(values.map((value, index) => [`k${index}`, encoder.encode(value)]));
  const content = { uid: "", type: "Opaque", data };
  const mounting = podWith({ volumes: [{ name: "v", secret: { secretName: "s" } }] });
  return hideSecrets({ secret: () => content }, mounting);
}

/** What it means, in time that grows with the square of the text and of the Secret. */
function hiddenSlowly(text: string, values: readonly string[]): string {
  const hidden = text.replaceAll(/\beyJ[\w-]{10,}\.[\w-]+\.[\w-]*/g, "<token>");
  const keys = new Map<string, string>();
  for (const [index, value] of values.entries()) {
    for (const line of [value.trim(), ...value.trim().split(/\s*\n\s*/)]) {
      if (line.length >= 4) keys.set(line, `k${index}`);
    }
  }
  if (keys.size === 0) return hidden;
  const lines = [...keys.keys()].toSorted((one, other) => other.length - one.length);
  const pattern = new RegExp(lines.map((line) => RegExp.escape(line)).join("|"), "g");
  return hidden.replaceAll(pattern, (line) => `<secret s/${keys.get(line)}>`);
}

test("of values that overlap, begin alike or hold each other, the first and longest are found", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", "\u00fc"), maxLength: 40 });
  fc.assert(
    fc.property(letters, fc.array(letters, { maxLength: 6 }), (text, values) => {
      assert.equal(hideValues(...values)(text), hiddenSlowly(text, values));
    }),
    { numRuns: 2_000 },
  );
});

test("tokens are found behind and before any other text", () => {
  const pieces = fc.constantFrom("eyJ", "eyJhbGciOiJSUzI1NiJ9", "abcdefghij", "-", ".", "_", " ", "\u00fc");
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
      const text = parts.join("");
      assert.equal(hideSecrets(objects, undefined)(text), hiddenSlowly(text, []));
    }),
    { numRuns: 2_000 },
  );
});

describe("nothing is delayed by", () => {
  test("a text that never becomes a token", () => {
    const text = "eyJ-".repeat(60_000);
    assert.equal(hideValues("swordfish")(text), text);
  });

  test("a value of much space", () => {
    const hide = hideValues(`swordfish${" ".repeat(500_000)}b`, `c${" ".repeat(250_000)}\n${" ".repeat(250_000)}trout`);
    assert.equal(hide("swordfish and trout"), "swordfish and <secret s/k1>");
  });

  const tooLarge = "<hidden: the pod's Secrets are too large to look for them in this text>";

  test("a Secret of 18,000 lines, which is looked for, or of 200,000, which withholds the text", () => {
    const lines = (count: number): string => {
      return Array.from({ length: count }, (_, index) => (index + 1_679_616).toString(36)).join("\n");
    };
    assert.equal(hideValues(lines(18_000))("it says 10dvr!"), "it says <secret s/k0>!");
    assert.equal(hideValues(lines(200_000))("it says 10dvr!"), tooLarge);
  });

  test("a text that is almost a value everywhere, and is withheld", () => {
    assert.equal(hideValues(`${"a".repeat(1_000_000)}b`)("a".repeat(10_000)), tooLarge);
  });
});
