"""The text that generated tokenizers learn from. Changing a letter of it changes every token id."""

from __future__ import annotations

TRAINING_TEXT = """\
The engine reads a prompt, splits it into tokens, and runs the tokens through every layer of the
model.
Each layer mixes what came before: a word early in the prompt changes the meaning of the words
after it.
When the prompt is long it is read in pieces; the pieces must add up to the same answer as the
whole.
An embedding is one vector for a text. A reranker gives one score to a question and a document.
A reward model gives a score to an answer. A token output gives one vector to each token of the
text.
If two ways of running the same model give two answers, at least one of the two answers is wrong.
Which way is wrong, where did it begin, and how small a prompt is needed to show it?
The river was high after the rain, and the old bridge had been closed since the morning.
She took the train to the capital, read half of a book, and slept until the lights of the city.
How many people live in the north of the country? What is the capital of France? Where is the
nearest harbour?
Paris is the capital of France. Berlin is the capital of Germany. The capital of Japan is Tokyo.
Gravity is a force that attracts two bodies towards each other. It gives weight to physical
objects.
Water boils at 100 degrees and freezes at 0 degrees; mountains are colder than valleys and the sea
is deep.
The doctor asked the patient to rest for three days, drink enough water, and call again on Monday.
A market needs buyers and sellers, and a price that both of them can accept without regret.
Music was heard from the open window: first a piano, then a violin, then people laughing and
singing.
The judge must decide whether the document answers the query, and the answer can only be yes or no.
Given a web search query, retrieve relevant passages that answer the query. Note that the answer
is yes or no.
def total(values):
    result = 0
    for value in values:
        if value is not None and value > 0:
            result += value
    return result
class Queue: pass
import json; print(json.dumps({"name": "value", "count": 12345, "ratio": 0.5}))
for (int i = 0; i < n; i++) { sum += a[i] * b[i]; } // loop over the array
SELECT name, count(*) FROM table WHERE id = 7 GROUP BY name ORDER BY 2 DESC;
Der Zug ist heute nicht gekommen, und wir haben lange auf dem Bahnhof gewartet.
Le chat est sur la table et les enfants sont dans le jardin avec leurs amis.
La casa de mi abuela tiene una puerta verde y muchas flores en las ventanas.
Сегодня хорошая погода, и мы пошли гулять в парк вместе с друзьями.
今天天气很好，我们去公园散步。日本の首都は東京です。 오늘은 날씨가 좋습니다.
"""
