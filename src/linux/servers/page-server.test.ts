import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { servePage } from "./page-server.ts";

test("other users of the machine, who only connect, keep no browser from the page", async () => {
  const page = async () => ({ status: 200, contentType: "text/plain", body: "the page" });
  await using server = await servePage(0, () => page);
  const clients: Socket[] = [];
  try {
    for (let index = 0; index < 80; index++) {
      const client = connect({ host: "127.0.0.1", port: server.port }).on("error", () => {});
      clients.push(client);
      await once(client, "connect");
    }
    assert.equal(await (await fetch(`http://${server.address}/`)).text(), "the page");
  } finally {
    for (const client of clients) client.destroy();
  }
});
