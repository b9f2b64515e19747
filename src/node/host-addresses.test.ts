import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { FileError } from "../ports/files.ts";
import { HostAddresses } from "./host-addresses.ts";
import type { NodeIps } from "./host-address.ts";

const { signal } = new AbortController();

class Machine {
  readonly clock = new ManualClock();
  address = "192.0.2.1";
  lookUps = 0;
  readonly warnings: string[] = [];
  lookUp = async (): Promise<string[]> => {
    this.lookUps++;
    throw new Error("no such name");
  };
  readonly addresses: HostAddresses;

  constructor(nodeIps: NodeIps = { given: [], prefersV6: false }) {
    const read = async (path: string): Promise<Uint8Array> => {
      if (path !== "/proc/net/route") throw new FileError("ENOENT", path, "no such file");
      return new TextEncoder().encode("eth0\t00000000\t010200C0\t0003\n");
    };
    const interfaces = () => [{ name: "eth0", addresses: this.address === "" ? [] : [this.address] }];
    const network = { interfaces, lookUp: () => this.lookUp() };
    const warn = (message: string, fields: object = {}): void =>
      void this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    const deps = { clock: this.clock, files: { read }, network, log: { ...silentLog, warn } };
    this.addresses = new HostAddresses(deps, nodeIps, "node1");
  }
}

test("a machine's new address is used, and the last one while it has none", async () => {
  const machine = new Machine();
  const { addresses } = machine;
  const { list } = addresses;
  assert.deepEqual([await addresses.look(signal), list], [["192.0.2.1"], ["192.0.2.1"]]);
  machine.address = "";
  assert.deepEqual(await addresses.look(signal), ["192.0.2.1"]);
  machine.address = "192.0.2.2";
  assert.deepEqual([await addresses.look(signal), list], [["192.0.2.2"], ["192.0.2.2"]]);
  assert.equal(machine.lookUps, 3);
});

test("pods get the Node's addresses, names are ignored", async () => {
  const { addresses } = new Machine();
  let changes = 0;
  addresses.onChange(() => changes++);
  await addresses.look(signal);
  addresses.published([{ type: "Hostname", address: "node1" }]);
  assert.deepEqual(addresses.list, ["192.0.2.1"]);
  const told = [
    { type: "InternalIP", address: "198.51.100.4" },
    { type: "Hostname", address: "node1" },
  ];
  addresses.published(told);
  addresses.published([...told]);
  assert.deepEqual([addresses.list, addresses.ofNode, changes], [["198.51.100.4"], told, 2]);
  await addresses.look(signal);
  assert.deepEqual(addresses.list, ["198.51.100.4"], "a cloud's word goes before the machine's");
});

test("a resolver that hangs is waited for two seconds", async () => {
  const machine = new Machine();
  machine.lookUp = () => new Promise<string[]>(() => {});
  const look = machine.addresses.look(signal);
  await settle();
  await machine.clock.advance(2000);
  assert.deepEqual(await look, ["192.0.2.1"]);
  assert.deepEqual(machine.clock.waits, []);
});

test("an address of --node-ip is never detected", async () => {
  const machine = new Machine({ given: ["203.0.113.1"], prefersV6: false });
  assert.deepEqual(await machine.addresses.look(signal), ["203.0.113.1"]);
  assert.deepEqual([machine.addresses.list, machine.lookUps], [["203.0.113.1"], 0]);
});

test("an address of --node-ip that the machine lacks is reported unverified, with one warning", async () => {
  const machine = new Machine({ given: ["192.0.2.7"], prefersV6: false });
  for (let look = 0; look < 2; look++) assert.deepEqual(await machine.addresses.look(signal), ["192.0.2.7"]);
  assert.equal(machine.warnings.length, 1);
  assert.match(machine.warnings[0] ?? "", /192\.0\.2\.7.*no network interface of this machine has this address/);
  machine.address = "192.0.2.7";
  await machine.addresses.look(signal);
  machine.address = "192.0.2.1";
  await machine.addresses.look(signal);
  assert.equal(machine.warnings.length, 2, "one that goes is told again");
});
