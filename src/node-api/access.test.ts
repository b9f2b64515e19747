import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { NodeHandler, NodeRequest } from "../ports/node-server.ts";
import { type Authenticator, type Authorizer, withAccess } from "./access.ts";
import { plain } from "./answers.ts";
import { anonymous, byAny, byCertificate, byToken, parseTokenFile } from "./authenticators.ts";
import { allowKnown } from "./authorizers.ts";

const jane = { commonName: "jane", organizations: [], uids: [], sha256: "0a1b" };

const handler: NodeHandler = async () => plain(200, "done");

function request(path: string, more: Partial<NodeRequest> = {}): NodeRequest {
  return {
    method: "GET",
    path,
    query: new URLSearchParams(),
    body: async () => "",
    signal: new AbortController().signal,
    headers: {},
    certificate: undefined,
    upgrade: false,
    ...more,
  };
}

async function ask(
  authenticators: readonly Authenticator[],
  authorize: Authorizer,
  asked: NodeRequest,
): Promise<string> {
  const answer = await withAccess(handler, authenticators, authorize, silentLog)(asked);
  assert.ok("status" in answer);
  assert.ok(typeof answer.body === "string");
  return `${answer.status} ${answer.body}`;
}

const tokens = byToken(systemHashing, parseTokenFile('s3cret,bob,1,"dev,ops"\nother,eve,2', "/tokens"), true);
const bearer = (token: string): Partial<NodeRequest> => ({ headers: { authorization: `Bearer ${token}` } });

test("a client without credentials is unauthenticated, or anonymous where that is allowed", async () => {
  assert.equal(await ask([byCertificate, tokens], allowKnown, request("/pods")), "401 Unauthorized");
  const everybody = [byCertificate, tokens, anonymous];
  assert.equal(await ask(everybody, allowKnown, request("/healthz")), "200 done");
  assert.equal(
    await ask(everybody, allowKnown, request("/exec/a/b/c", { method: "POST" })),
    "403 Forbidden (user=system:anonymous, verb=create, resource=nodes, subresource(s)=[proxy])",
  );
});

test("a client with a wrong token is not treated as anonymous", async () => {
  assert.equal(await ask([tokens, anonymous], allowKnown, request("/healthz", bearer("s3cre"))), "401 Unauthorized");
  assert.equal(await ask([anonymous], allowKnown, request("/healthz", bearer("any"))), "401 Unauthorized");
});

test("a certificate provides user and groups, a token those of its line", async () => {
  const seen: unknown[] = [];
  const authorize: Authorizer = async (who) => {
    seen.push([who.name, ...who.groups]);
    return true;
  };
  const certificate = { ...jane, organizations: ["system:masters"] };
  await ask([byCertificate, tokens], authorize, request("/pods", { certificate }));
  await ask([byCertificate, tokens], authorize, request("/pods", bearer("s3cret")));
  assert.deepEqual(seen, [
    ["jane", "system:masters", "system:authenticated"],
    ["bob", "dev", "ops", "system:authenticated"],
  ]);
});

test("authorizers learn a certificate's digest and the user's UID, as from kube-apiserver", async () => {
  const identify = async (uids: readonly string[]): Promise<unknown> =>
    await byCertificate(request("/pods", { certificate: { ...jane, uids } }));
  const [name, groups] = ["jane", ["system:authenticated"]];
  const extra = { "authentication.kubernetes.io/credential-id": ["X509SHA256=0a1b"] };
  assert.deepEqual(await identify([]), { name, groups, extra });
  assert.deepEqual(await identify(["7a1d"]), { name, groups, uid: "7a1d", extra });
  await assert.rejects(identify(["7a1d", "7a1e"]), /^Error: the client certificate of jane has 2 UIDs$/);
  await assert.rejects(identify([""]), /^Error: the client certificate of jane has an empty UID$/);
});

test("an error of one method does not stop the next, but the client is not anonymous then", async () => {
  const certificate = { ...jane, uids: ["7a1d", "7a1e"] };
  const methods = [byAny([byCertificate, tokens]), anonymous];
  const asked = async (more: Partial<NodeRequest>): Promise<string> =>
    await ask(methods, allowKnown, request("/healthz", { certificate, ...more }));
  assert.equal(await asked(bearer("s3cret")), "200 done");
  assert.equal(await asked(bearer("wrong")), "401 Unauthorized");
  assert.equal(await asked({}), "401 Unauthorized");
  assert.equal(await asked({ certificate: undefined }), "200 done");
  const both = byAny([byCertificate, () => Promise.reject(new Error("token review: away"))]);
  await assert.rejects(
    both(request("/pods", { certificate })),
    /^Error: the client certificate of jane has 2 UIDs; token review: away$/,
  );
});

test("an authorization error never grants access", async () => {
  const broken = async (): Promise<never> => {
    throw new Error("the API server is away");
  };
  assert.equal(await ask([broken], allowKnown, request("/pods")), "401 Unauthorized");
  assert.match(await ask([tokens], broken, request("/pods", bearer("s3cret"))), /^500 Authorization error/);
});

test("authorization uses the served path, however it was encoded", async () => {
  const asked: string[] = [];
  const authorize: Authorizer = async (_who, { subresources }) => {
    asked.push(subresources.join(" "));
    return false;
  };
  for (const path of ["/pods", "/%70ods", "/pods%2f..%2fexec", "/stats/../exec/a"]) {
    await ask([anonymous], authorize, request(path));
  }
  assert.deepEqual(asked, ["pods proxy", "pods proxy", "pods proxy", "stats"]);
  assert.match(await ask([anonymous], authorize, request("/pods/%zz")), /^400 /);
});

test("errors of a token file name the line, and no token", () => {
  const problem = (text: string): string => {
    try {
      parseTokenFile(text, "/tokens");
    } catch (error) {
      return String(error);
    }
    return "none";
  };
  assert.match(problem("# fine\n\na-token,bob"), /\/tokens:3: it has 2 fields/);
  assert.match(problem('a-token,bob,1,"dev'), /\/tokens:1: unclosed quote/);
  assert.match(problem("a-token,bob,1\na-token,eve,2"), /\/tokens:2: duplicate token/);
  assert.match(problem("a-token,,1"), /the user's name is empty/);
  assert.match(problem(",bob,1"), /the token is empty/);
  for (const text of ["a-token,bob", 'a-token,b,1,"', "a-token,,1"]) assert.doesNotMatch(problem(text), /a-token/);
  assert.deepEqual(parseTokenFile('t,"a ""b""",1\n', "/tokens").get("t"), {
    name: 'a "b"',
    uid: "1",
    groups: ["system:authenticated"],
  });
});
