import test from 'ava';
import {openApi} from './open-api.ts';

const document: unknown = JSON.parse(JSON.stringify(openApi('1.2.3')));

test('the document names every part of an answer with its type, also where an id stands', t => {
  t.like(document, {openapi: '3.1.0', info: {version: '1.2.3'}});
  t.like(schemaOf('/hearsay/v1/nodes'), {
    properties: {nodes: {items: {required: ['id'], properties: {id: {type: 'string'}, busy: {type: 'number'}}}}},
  });
});

test('what is needed of a query and of a body is said', t => {
  t.like(at('/hearsay/v1/route', 'get', 'parameters'), [
    {name: 'model', required: true},
    {name: 'policy', required: false},
  ]);
  t.like(at('/hearsay/v1/policies', 'post', 'requestBody', 'content', 'application/json', 'schema'), {
    required: ['subject', 'policy'],
  });
  t.like(at('/hearsay/v1/why/{id}', 'get', 'parameters'), [{name: 'id', in: 'path', required: true}]);
});

function schemaOf(path: string): unknown {
  return at(path, 'get', 'responses', '200', 'content', 'application/json', 'schema');
}

function at(...names: readonly string[]): unknown {
  return ['paths', ...names].reduce<unknown>((value, name) => Reflect.get(Object(value), name), document);
}
