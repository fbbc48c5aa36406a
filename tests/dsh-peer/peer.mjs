// DSH's published jsonl persistence, driven line by line: peer.mjs PACKAGES ROOT zstd|none
//
// PACKAGES is the folder whose node_modules holds it; ROOT is the root of the session logs.
// Each line of standard input is one operation, each line of standard output its outcome, in order:
//
//   {"op":"list"}                          -> {"ok":[id, …]}         every session it lists, sorted
//   {"op":"read","id":ID}                  -> {"ok":{header, events}} events as JSON texts
//   {"op":"raw","id":ID}                   -> {"ok":text}            the log's text, decoded
//   {"op":"create","header":{…}}           -> {"ok":null}            owned, not stored yet
//   {"op":"append","id":ID,"events":[…]}   -> {"ok":null}            events as JSON texts
//   {"op":"load","id":ID}                  -> {"ok":count}           with its own repair, on disk
//   {"op":"spell","texts":[…]}             -> {"ok":[text, …]}       JSON texts as it would spell them
//
// What an operation throws becomes {"error":message}.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [packages, root, compression] = process.argv.slice(2);
const { resolve } = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(resolve(`@deepseek-ai/${name}`)));
const { Context } = await load('cordis');
const { SessionStore } = await load('dsh-session');
const { JsonlSessionPersistence } = await load('dsh-session-persistence-jsonl');

const context = new Context();
await context.plugin(SessionStore);
await context.plugin(JsonlSessionPersistence, { root, compression });
const store = context.sessionPersistence;

const operations = {
    list: async () => (await store.listSnapshots()).map(({ header, meta }) => (header ?? meta).id).sort(),
    read: async ({ id }) => {
        const { meta, events } = await store.readFrom(id, 0);
        return { header: meta, events: events.map((event) => JSON.stringify(event)) };
    },
    raw: async ({ id }) => (await store.readRaw(id)).content,
    create: async ({ header }) => (await store.create(header), null),
    append: async ({ id, events }) => (await store.append(id, events.map((text) => JSON.parse(text))), null),
    load: async ({ id }) => (await store.load(id)).events.length,
    spell: async ({ texts }) => texts.map((text) => JSON.stringify(JSON.parse(text))),
};

for await (const line of createInterface({ input: process.stdin })) {
    const { op, ...rest } = JSON.parse(line);
    let outcome;
    try {
        outcome = { ok: await operations[op](rest) };
    } catch (error) {
        outcome = { error: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(outcome) + '\n');
}
