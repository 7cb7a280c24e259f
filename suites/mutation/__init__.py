"""Mutation testing of the judge: changed piece by piece, does a test fail?"""
