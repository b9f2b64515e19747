import assert from "node:assert/strict";
import { test } from "node:test";
import { listenAddresses, listenAtAll } from "./port-forward.ts";

/** Listens for a command; those addresses are taken. */
class Machine {
  readonly open: string[] = [];
  readonly #taken: readonly string[];

  constructor(...taken: readonly string[]) {
    this.#taken = taken;
  }

  /** The addresses that are listened at, and the number of problems that were passed over. */
  async listen(text: string, wanted = 80): Promise<[string[], number]> {
    const { listeners, problems } = await listenAtAll(listenAddresses(text), wanted, async (host, asked) => {
      if (this.#taken.includes(host)) throw new Error(`${host} is taken`);
      const port = asked === 0 ? 40_000 + this.open.length : asked;
      this.open.push(host);
      return { port, close: () => void this.open.splice(this.open.indexOf(host), 1) };
    });
    return [[...listeners].map(([host, { port }]) => `${host} ${port}`), problems.length];
  }
}

test("an address that was asked for and cannot be listened at is an error, after which nothing listens", async () => {
  for (const text of ["127.0.0.1,192.0.2.1", "192.0.2.1,127.0.0.1", "localhost,192.0.2.1"]) {
    const machine = new Machine("192.0.2.1");
    await assert.rejects(machine.listen(text), /192\.0\.2\.1 is taken/u);
    assert.deepEqual(machine.open, []);
  }
});

test("one address of localhost is enough, unless the other was asked for by itself", async () => {
  assert.deepEqual(await new Machine().listen("localhost"), [["127.0.0.1 80", "::1 80"], 0]);
  assert.deepEqual(await new Machine("::1").listen("localhost"), [["127.0.0.1 80"], 1]);
  assert.deepEqual(await new Machine("127.0.0.1").listen("localhost"), [["::1 80"], 1]);
  await assert.rejects(new Machine("127.0.0.1", "::1").listen("localhost"), /127\.0\.0\.1 is taken/u);
  await assert.rejects(new Machine("::1").listen("localhost,::1"), /::1 is taken/u);
  const beside = new Machine("127.0.0.1", "::1");
  await assert.rejects(beside.listen("10.0.0.1,localhost"), /127\.0\.0\.1 is taken/u);
  assert.deepEqual(beside.open, []);
});

test("each address is listened at once, and a free port is the same at all", async () => {
  const machine = new Machine();
  assert.deepEqual(await machine.listen("localhost,127.0.0.1,localhost", 0), [["127.0.0.1 40000", "::1 40000"], 0]);
});
