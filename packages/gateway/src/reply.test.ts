import test from 'ava';
import {textOfHeader} from './reply.ts';

test('other letters in a header are understood as UTF-8 and as in a URL', t => {
  const asSent = Buffer.from('pin=Küche').toString('latin1'); // as node:http hands them over
  t.is(textOfHeader(asSent), 'pin=Küche');
  t.is(textOfHeader('pin=K%C3%BCche'), 'pin=Küche');
  t.is(textOfHeader('pin=spark'), 'pin=spark');
  t.is(textOfHeader('pin=100%'), 'pin=100%');
  t.is(textOfHeader('pin=K\u00fcche'), 'pin=K\u00fcche', 'Latin-1 of an old client');
});
