//! A transformer for translation: embeddings, `nn::Transformer`, an output layer, and beam search on the device.
use crate::fori_loop;
use crate::nn::module::at_caller;
use crate::nn::{Embedding, Linear, Module, Parts, Transformer, TransformerMasks, TransformerOptions};
use crate::tensor::{Tensor, no_grad, refuse};
use crate::where_;

/// The sizes of a [`Translation`].
#[derive(Clone, Debug)]
pub struct TranslationConfig {
    pub src_vocab: usize,
    pub tgt_vocab: usize,
    /// The longest text, in tokens.
    pub max_len: usize,
    pub d_model: usize,
    pub nhead: usize,
    pub num_encoder_layers: usize,
    pub num_decoder_layers: usize,
    /// What the layers take; the batch comes first whatever it says.
    pub options: TransformerOptions,
}

/// Tokens times √d plus a learnt position, an encoder and a decoder, and scores of the target's words.
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{Translation, TranslationConfig};
/// let config = TranslationConfig {
///     src_vocab: 20, tgt_vocab: 30, max_len: 8, d_model: 16, nhead: 2, num_encoder_layers: 1, num_decoder_layers: 1,
///     options: nn::TransformerOptions { dim_feedforward: 32, dropout: 0.0, ..Default::default() },
/// };
/// let model = Translation::new(&config);
/// let src = tensor([[3, 4, 5], [6, 7, 0]]);
/// let padding = src.eq(0);
/// assert_eq!(model.forward(&src, &tensor([[1, 9], [1, 8]]), Some(&padding)).shape(), [2, 2, 30]);
/// let (words, _) = model.beam_search(&src, Some(&padding), 4, 1, 2);
/// assert_eq!(words.shape(), [2, 8]);
/// ```
pub struct Translation {
    src_embed: Embedding,
    tgt_embed: Embedding,
    pos_embed: Embedding,
    transformer: Transformer,
    generator: Linear,
    max_len: usize,
}

impl Translation {
    #[track_caller]
    pub fn new(c: &TranslationConfig) -> Translation {
        at_caller(|| {
            let options = TransformerOptions { batch_first: true, ..c.options.clone() };
            let (d, n, m) = (c.d_model, c.num_encoder_layers, c.num_decoder_layers);
            Translation {
                src_embed: Embedding::new(c.src_vocab, d),
                tgt_embed: Embedding::new(c.tgt_vocab, d),
                pos_embed: Embedding::new(c.max_len, d),
                transformer: Transformer::with(d, c.nhead, n, m, options),
                generator: Linear::new(d, c.tgt_vocab),
                max_len: c.max_len,
            }
        })
    }

    #[track_caller]
    fn embedded(&self, table: &Embedding, words: &Tensor) -> Tensor {
        let length = words.size(1);
        if length > self.max_len {
            refuse(
                "Translation",
                &[words],
                format!("{length} tokens are more than the {} that there may be", self.max_len),
            );
        }
        let places = self.pos_embed.weight.narrow(0, 0, length as i64);
        let d = self.pos_embed.weight.size(1) as f64;
        table.forward(words) * d.sqrt() + places
    }

    #[track_caller]
    fn masks(&self, src_pad: Option<&Tensor>) -> TransformerMasks {
        TransformerMasks {
            tgt_is_causal: true,
            src_key_padding_mask: src_pad.cloned(),
            memory_key_padding_mask: src_pad.cloned(),
            ..Default::default()
        }
    }

    /// The scores of each next word, [n, length, words], when `src` [n, source] has been read and `tgt` [n, length] said; `src_pad`
    /// is true at padding.
    #[track_caller]
    pub fn forward(&self, src: &Tensor, tgt: &Tensor, src_pad: Option<&Tensor>) -> Tensor {
        at_caller(|| {
            let masks = self.masks(src_pad);
            let memory = self.transformer.encoder.forward_with(&self.embedded(&self.src_embed, src), &masks);
            self.said(tgt, &memory, &masks)
        })
    }

    #[track_caller]
    fn said(&self, tgt: &Tensor, memory: &Tensor, masks: &TransformerMasks) -> Tensor {
        let x = self.embedded(&self.tgt_embed, tgt);
        self.generator.forward(&self.transformer.decoder.forward(&x, memory, masks))
    }

    /// The likeliest translations that a search of `beams` candidates finds: words [n, max_len] from `start` on, `end` and what is
    /// behind it `end`, and the sum of the logarithms of their probabilities, `[n]`. One program for all steps, in buffers of a
    /// fixed size; the first beams, without their ends' lengths weighed.
    #[track_caller]
    pub fn beam_search(
        &self,
        src: &Tensor,
        src_pad: Option<&Tensor>,
        beams: usize,
        start: i64,
        end: i64,
    ) -> (Tensor, Tensor) {
        at_caller(|| no_grad(|| self.search(src, src_pad, beams, start, end)))
    }

    #[track_caller]
    fn search(&self, src: &Tensor, src_pad: Option<&Tensor>, beams: usize, start: i64, end: i64) -> (Tensor, Tensor) {
        let (n, length) = (src.size(0), self.max_len);
        let words = self.generator.weight.size(0);
        if beams == 0 || beams > words {
            refuse("beam_search", &[src], format!("beams are from 1 to the number of words, {words}, not {beams}"));
        }
        let masks = self.masks(src_pad);
        let memory = self.transformer.encoder.forward_with(&self.embedded(&self.src_embed, src), &masks);
        // a row for each beam of each text
        let memory = memory.repeat_interleave(beams, 0);
        let masks = self.masks(src_pad.map(|p| p.repeat_interleave(beams, 0)).as_ref());
        let places = Tensor::arange(0, length as i64, 1);
        let first = Tensor::full([n, beams, length], end).long();
        let first = where_(&places.eq(0), start, &first).long();
        // All beams begin alike: but one counts.
        let others = Tensor::arange(0, beams as i64, 1).gt(0);
        let scores = Tensor::zeros([n, beams]).masked_fill(&others, f64::NEG_INFINITY);
        let done = Tensor::zeros([n, beams]).bool();
        let (said, scores, _) = fori_loop(
            1,
            length as i64,
            |t, (said, scores, done): (Tensor, Tensor, Tensor)| {
                let all = self.said(&said.reshape([n * beams, length]), &memory, &masks);
                let now = all.index_select(1, &(&t - 1).reshape(1)).squeeze_dim(1).log_softmax(-1);
                let now = now.reshape([n, beams, words]);
                // what has ended goes on as it is, with certainty
                let stays = Tensor::arange(0, words as i64, 1).eq(end);
                let kept = Tensor::zeros([words]).masked_fill(&stays.logical_not(), f64::NEG_INFINITY);
                let next = where_(&done.unsqueeze(-1), &kept, &now);
                let (best, at) = (scores.unsqueeze(-1) + next).reshape([n, beams * words]).topk(beams, 1, true);
                let (from, word) = (at.floor_divide(words as i64), at.remainder(words as i64));
                let rows = from.unsqueeze(-1).expand([n, beams, length]);
                let said = where_(&places.eq(&t), word.unsqueeze(-1), said.gather(1, &rows));
                let done = done.long().gather(1, &from).bool().logical_or(word.eq(end));
                (said, best, done)
            },
            &(first, scores, done),
        );
        (said.select(1, 0), scores.select(1, 0))
    }

    /// The likeliest words one after the other: a search of one beam.
    #[track_caller]
    pub fn translate(&self, src: &Tensor, src_pad: Option<&Tensor>, start: i64, end: i64) -> Tensor {
        at_caller(|| no_grad(|| self.search(src, src_pad, 1, start, end).0))
    }
}

impl Module for Translation {
    fn parts(&self, p: &mut Parts) {
        p.add("src_embed", &self.src_embed);
        p.add("tgt_embed", &self.tgt_embed);
        p.add("pos_embed", &self.pos_embed);
        p.add("transformer", &self.transformer);
        p.add("generator", &self.generator);
    }
}
